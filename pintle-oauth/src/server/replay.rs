use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use ring::digest::{Context, SHA256};

/// The accepted age of a proof in seconds, in both directions.
pub(super) const WINDOW: u64 = 300;
/// The seconds by which the clock of a client may be behind when a server has just started.
const SKEW: u64 = 5;
/// The interval in seconds between two removals of expired proofs.
const SWEEP: u64 = 30;
/// The limit of recorded proofs, of about 40 bytes each.
const MAX_PROOFS: usize = 1 << 20;
/// A holder may use this fraction of the free capacity.
const SHARE: usize = 8;

/// The DPoP proofs that were used. Each may be used once.
///
/// A proof is recorded until it expires, and never dropped before. A holder is one user of one issuer, with any number of
/// keys and clients. A holder that floods is refused at a ninth of the capacity, and others are not.
#[derive(Debug)]
pub(super) struct Replay {
    limit: usize,
    /// Proofs that were issued before this time may have been used: nobody knows any more.
    since: u64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The digests of proofs with their expiry, by holder.
    held: HashMap<[u8; 16], HashMap<[u8; 16], u64>>,
    /// The number of proofs of all holders.
    total: usize,
    swept_at: u64,
    /// When a refused holder was last logged.
    warned: bool,
}

/// A proof that is valid but for its reuse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used<'a> {
    /// Issuer and subject of the token.
    pub(super) holder: (&'a str, &'a str),
    /// The thumbprint of the key that the proof is signed with.
    pub(super) thumbprint: &'a str,
    pub(super) jti: &'a str,
    pub(super) issued_at: u64,
}

/// The result of recording a proof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Use {
    First,
    Again,
    /// The holder has used too many: no more can be recorded, and so no more can be accepted.
    TooMany,
}

impl Default for Replay {
    fn default() -> Self {
        Self { limit: MAX_PROOFS, since: 0, seen: Mutex::default() }
    }
}

impl Replay {
    /// Creates a record that knows of the proofs from now on.
    pub(super) fn starting_at(now: u64) -> Self {
        Self { since: now.saturating_sub(SKEW), ..Self::default() }
    }

    /// Returns whether a proof may have been used before this record began.
    pub(super) fn is_forgotten(&self, issued_at: u64) -> bool {
        issued_at < self.since
    }

    /// Creates a record with this capacity.
    #[cfg(test)]
    pub(super) fn of(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Records the use of a proof.
    pub(super) fn note(&self, used: &Used<'_>, now: u64) -> Use {
        let holder = digest_of([used.holder.0, used.holder.1]);
        let proof = digest_of([used.thumbprint, used.jti]);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if now.abs_diff(seen.swept_at) >= SWEEP {
            seen.sweep(now);
        }
        let Seen { held, total, warned, .. } = &mut *seen;
        let left = self.limit.saturating_sub(*total);
        let of_holder = held.get(&holder);
        if of_holder.is_some_and(|proofs| proofs.contains_key(&proof)) {
            return Use::Again;
        }
        if of_holder.map_or(0, HashMap::len).saturating_mul(SHARE) >= left {
            if !std::mem::replace(warned, true) {
                let (issuer, subject) = used.holder;
                tracing::warn!(issuer, subject, "a holder has used too many DPoP proofs; refusing more");
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
            // A proof of exactly the accepted age is still valid.
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

impl Used<'_> {
    /// Returns the value that identifies the proof to other processes, and its expiry in seconds of the Unix epoch.
    pub(super) fn nonce(&self) -> ([u8; 32], u64) {
        (long_digest_of([self.thumbprint, self.jti]), self.issued_at.saturating_add(WINDOW))
    }
}

fn digest_of(texts: [&str; 2]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&long_digest_of(texts)[..16]);
    key
}

/// Digests a list of texts with their lengths, so that different lists never collide.
fn long_digest_of(texts: [&str; 2]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut key = [0; 32];
    key.copy_from_slice(context.finish().as_ref());
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
        // Those that are still good are counted again.
        let later = NOW + 5 * WINDOW + SWEEP;
        note(&replay, "ann", "y", later, later);
        note(&replay, "bob", "y", later, later);
        assert_eq!(replay.seen.lock().unwrap().total, 3);
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
