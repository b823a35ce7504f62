use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use ring::digest::{Context, SHA256};

/// A proof may be so many seconds old, or by a clock that is so many early.
pub(super) const WINDOW: u64 = 300;
/// Seconds between two looks for proofs that have expired.
const SWEEP: u64 = 30;
/// Proofs that are remembered at the same time, each in some 40 bytes.
const MOST: usize = 1 << 20;
/// A holder may have as many remembered as this part of the room that is left for everybody.
const SHARE: usize = 8;

/// The DPoP proofs that were used, because each may be used once.
///
/// A proof is remembered until it would be too old anyway, and never forgotten before. A holder is one user of one issuer,
/// with any number of keys and clients. The more is remembered of one, the more room has to be left for the others: who
/// floods is refused at a ninth of it, and others are not.
#[derive(Debug)]
pub(super) struct Replay {
    most: usize,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// By holder: a digest of each proof, and until when it is good.
    held: HashMap<[u8; 16], HashMap<[u8; 16], u64>>,
    /// All proofs of all holders.
    total: usize,
    swept_at: u64,
    /// That it was said since then that a holder is refused.
    warned: bool,
}

/// A proof that was checked in every other way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used<'a> {
    /// Issuer and subject of the token.
    pub(super) holder: (&'a str, &'a str),
    /// Of the key that the proof is signed with.
    pub(super) thumbprint: &'a str,
    pub(super) jti: &'a str,
    pub(super) issued_at: u64,
}

/// What is known of a proof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Use {
    First,
    Again,
    /// Its holder has used so many that no more can be remembered, and so no more can be accepted.
    TooMany,
}

impl Default for Replay {
    fn default() -> Self {
        Self { most: MOST, seen: Mutex::default() }
    }
}

impl Replay {
    /// One that has room for so many.
    #[cfg(test)]
    pub(super) fn of(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Notes the use of a proof.
    pub(super) fn note(&self, used: &Used<'_>, now: u64) -> Use {
        let holder = digest_of([used.holder.0, used.holder.1]);
        let proof = digest_of([used.thumbprint, used.jti]);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now.abs_diff(seen.swept_at) >= SWEEP {
            seen.sweep(now);
        }
        let Seen { held, total, warned, .. } = &mut *seen;
        let left = self.most.saturating_sub(*total);
        let of_holder = held.get(&holder);
        if of_holder.is_some_and(|proofs| proofs.contains_key(&proof)) {
            return Use::Again;
        }
        if of_holder.map_or(0, HashMap::len).saturating_mul(SHARE) >= left {
            if !std::mem::replace(warned, true) {
                let (issuer, subject) = used.holder;
                tracing::warn!(issuer, subject, "more DPoP proofs were used than can be remembered");
            }
            return Use::TooMany;
        }
        held.entry(holder).or_default().insert(proof, used.issued_at.saturating_add(WINDOW));
        *total += 1;
        Use::First
    }
}

impl Seen {
    fn sweep(&mut self, now: u64) {
        let mut total = 0;
        self.held.retain(|_, proofs| {
            // One that is as old as allowed is still good.
            proofs.retain(|_, good_until| *good_until >= now);
            if proofs.len() < proofs.capacity() / 4 {
                proofs.shrink_to_fit();
            }
            total += proofs.len();
            !proofs.is_empty()
        });
        self.total = total;
        (self.swept_at, self.warned) = (now, false);
    }
}

/// No two lists of texts are alike in this: each text is told where it ends.
fn digest_of(texts: [&str; 2]) -> [u8; 16] {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut key = [0; 16];
    key.copy_from_slice(&context.finish().as_ref()[..16]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn note(replay: &Replay, subject: &str, jti: &str, issued_at: u64, now: u64) -> Use {
        let holder = ("https://as", subject);
        replay.note(&Used { holder, thumbprint: "key", jti, issued_at }, now)
    }

    #[test]
    fn a_proof_is_good_once_for_as_long_as_it_is_good() {
        let replay = Replay::default();
        for issued_at in [NOW - WINDOW, NOW, NOW + WINDOW] {
            let jti = issued_at.to_string();
            assert_eq!(note(&replay, "ann", &jti, issued_at, NOW), Use::First);
            let last = issued_at + WINDOW;
            for now in [NOW, NOW.midpoint(last), last] {
                assert_eq!(note(&replay, "ann", &jti, issued_at, now), Use::Again, "{issued_at} {now}");
            }
        }
        // The others have expired by then, and are not kept.
        note(&replay, "ann", "x", NOW + 5 * WINDOW, NOW + 5 * WINDOW);
        assert_eq!(replay.seen.lock().unwrap().total, 1);
    }

    #[test]
    fn keys_do_not_share_their_proofs() {
        let replay = Replay::default();
        for (thumbprint, jti) in [("key", "1"), ("key1", ""), ("other", "1")] {
            let used = Used { holder: ("https://as", "ann"), thumbprint, jti, issued_at: NOW };
            assert_eq!(replay.note(&used, NOW), Use::First);
            assert_eq!(replay.note(&used, NOW), Use::Again);
        }
    }

    #[test]
    fn whoever_floods_is_refused_and_nobody_elses_proof_is_forgotten() {
        let replay = Replay::of(900);
        assert_eq!(note(&replay, "ann", "hers", NOW, NOW), Use::First);
        let flood = |subject: &str| {
            (0..1000).filter(|at| note(&replay, subject, &at.to_string(), NOW, NOW) == Use::First).count()
        };
        assert_eq!(flood("mallory"), 100);
        assert_eq!(note(&replay, "mallory", "more", NOW, NOW), Use::TooMany);
        assert_eq!(note(&replay, "mallory", "7", NOW, NOW), Use::Again);
        assert_eq!(note(&replay, "ann", "hers", NOW, NOW), Use::Again, "it is still remembered");
        assert_eq!(note(&replay, "ann", "another", NOW, NOW), Use::First);
        // Others that do the same leave room too.
        for at in 0..30 {
            assert!(flood(&format!("accomplice {at}")) > 0);
        }
        assert_eq!(note(&replay, "bob", "his", NOW, NOW), Use::First);
        assert!(replay.seen.lock().unwrap().total <= 900);
        // It is over when their proofs are.
        let later = NOW + WINDOW + SWEEP;
        assert_eq!(note(&replay, "mallory", "more", later, later), Use::First);
    }
}
