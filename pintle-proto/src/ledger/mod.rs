//! Bytes that peers make a server hold: each is charged to its owner, to the owner's network, and to all.
//!
//! Of all, and of each kind, an owner has at most a quarter, a network half, and those without a principal together three quarters.
//! When there is no room, the owner that holds most is asked to free some.
//!
//! The holder of bytes has a [`Charge`]. The first [`FREE`] bytes of each are not charged, so that a small call touches no account. A holder
//! that can give its bytes up sets how with `Charge::on_give_way`.

mod account;
mod owner;
#[cfg(test)]
mod rows;
mod tally;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use pintle_types::RpcError;

use self::{
    account::AccountEntry,
    tally::{Ranking, Tally},
};
pub use self::{
    account::{Account, Charge},
    owner::Owner,
};
use crate::Limits;

/// The bytes of each call, session and message that are not charged. Nearly all need less, so those that need much compete only
/// with each other.
pub const FREE: usize = 4096;

/// A kind of bytes that a peer makes a server hold. The order is that in which they give way.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Held {
    /// Notifications of extensions that a session or subscription has not read.
    Notice,
    /// Data of sessions and subscriptions: descriptions of clients, and watched URIs.
    Session,
    /// Messages of a session that wait for its GET stream.
    Push,
    /// Notifications whose handlers run.
    Notification,
    /// Bodies of requests that are arriving.
    Body,
    /// Params and questions of calls that wait for answers in another request.
    Waiting,
    /// Params of calls that wait or run.
    #[default]
    Call,
}

/// The number of kinds.
const KINDS: usize = 7;
/// The place of the sum of all kinds.
const ALL: usize = KINDS;

/// The limits of all bytes of a kind, and of all kinds.
#[expect(clippy::exhaustive_structs, reason = "there is no third limit")]
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    /// All bytes of the kind.
    pub kind: usize,
    /// All bytes.
    pub all: usize,
}

impl Limits {
    /// Returns the limits of a kind of bytes.
    pub fn ceiling(&self, held: Held) -> Ceiling {
        let all = self.held_bytes;
        let kind = match held {
            Held::Session => self.sessions_bytes,
            Held::Notice | Held::Push | Held::Notification => all / 8,
            Held::Body | Held::Waiting => all / 2,
            Held::Call => all,
        };
        Ceiling { kind, all }
    }
}

/// The limit that a charge would exceed.
#[expect(clippy::exhaustive_enums, reason = "these are all that there are")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Full {
    /// That of the owner.
    Owner,
    /// That of the owner's network.
    Network,
    /// That of all without a principal, or of all.
    All,
}

impl Full {
    /// Returns the error of a request that is refused: one of the client's overload at its own limit, else one of unavailability.
    pub fn error(self, retry_after_ms: u64) -> RpcError {
        match self {
            Self::Owner => RpcError::overloaded(self.to_string(), retry_after_ms),
            Self::Network | Self::All => RpcError::unavailable(self.to_string(), retry_after_ms),
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => {
                "this client makes the server hold as many bytes as one may: wait for answers, or send less"
            }
            Self::Network => {
                "the clients of this network make the server hold as many bytes as they may: try again later, or authenticate"
            }
            Self::All => "the server holds as many bytes of its clients as it may: send less, or try again later",
        })
    }
}

/// The bytes that a server holds for its peers, by owner. Clones are the same ledger.
///
/// ```
/// use pintle_proto::{Limits, ledger::{Full, Held, Ledger, Owner}};
///
/// let mut limits = Limits::default();
/// limits.held_bytes = 1 << 20;
/// let ledger = Ledger::default();
/// let ann = ledger.account(&Owner::Principal("ann".into()));
/// let ceiling = limits.ceiling(Held::Call);
/// let first = ann.charge(Held::Call, 200 << 10, ceiling)?;
/// assert_eq!(ann.charge(Held::Call, 200 << 10, ceiling).unwrap_err(), Full::Owner);
/// drop(first);
/// assert!(ann.charge(Held::Call, 200 << 10, ceiling).is_ok());
/// # Ok::<(), Full>(())
/// ```
#[derive(Clone, Default)]
pub struct Ledger(Arc<Books>);

#[derive(Default)]
struct Books {
    total: Tally,
    /// All without a principal.
    anonymous: Tally,
    accounts: Mutex<HashMap<Owner, Weak<AccountEntry>>>,
    ranking: Ranking,
    last_number: AtomicU32,
}

impl Ledger {
    /// Returns the account of an owner. Keep it where the owner sends more than one message.
    pub fn account(&self, owner: &Owner) -> Account {
        let network = owner.network().map(|network| self.account(&network));
        let mut accounts = self.0.accounts();
        if let Some(entry) = accounts.get(owner).and_then(Weak::upgrade) {
            return Account(entry);
        }
        let entry = Arc::new(AccountEntry::new(&self.0, owner.clone(), network));
        accounts.insert(owner.clone(), Arc::downgrade(&entry));
        Account(entry)
    }

    /// Returns the number of bytes that are charged.
    pub fn bytes(&self) -> usize {
        self.0.total.get(ALL)
    }
}

impl Books {
    fn accounts(&self) -> MutexGuard<'_, HashMap<Owner, Weak<AccountEntry>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u32 {
        self.last_number.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const MIB: usize = 1 << 20;

    fn address(network: u64, near: u64) -> Owner {
        Owner::Address { near: network << 8 | near, network: network << 8 }
    }

    fn named(name: &str) -> Owner {
        Owner::Principal(name.into())
    }

    fn ceiling(mib: usize) -> Ceiling {
        Ceiling { kind: mib * MIB, all: mib * MIB }
    }

    /// Charges calls of a mebibyte until they are refused.
    fn fill(ledger: &Ledger, owner: &Owner, ceiling: Ceiling) -> (Vec<Charge>, Full) {
        let mut charges = Vec::new();
        loop {
            match ledger.account(owner).charge(Held::Call, MIB + FREE, ceiling) {
                Ok(charge) => charges.push(charge),
                Err(full) => return (charges, full),
            }
        }
    }

    #[test]
    fn an_owner_has_a_quarter_its_network_half_and_all_without_a_principal_three_quarters() {
        let (ledger, ceiling) = (Ledger::default(), ceiling(16));
        let mut held = Vec::new();
        for (owner, count, full) in [
            (address(1, 1), 4, Full::Owner),
            (address(1, 2), 4, Full::Owner),
            (address(1, 3), 0, Full::Network),
            (address(2, 1), 4, Full::Owner),
            (address(3, 1), 0, Full::All),
            (Owner::Unknown, 0, Full::All),
            (named("ann"), 4, Full::Owner),
            (named("bob"), 0, Full::All),
            (Owner::Local, 0, Full::All),
        ] {
            let (charges, refused) = fill(&ledger, &owner, ceiling);
            assert_eq!((charges.len(), refused), (count, full), "{owner:?}");
            held.push(charges);
            // What needs little is not charged.
            assert!(ledger.account(&owner).charge(Held::Call, FREE, ceiling).is_ok());
        }
        drop(held);
        assert_eq!(ledger.bytes(), 0);
        assert!(ledger.0.accounts().is_empty() && ledger.0.ranking.is_empty());
        assert_eq!(
            fill(&ledger, &Owner::Unknown, ceiling).0.len(),
            12,
            "they are many, as far as anybody knows"
        );
        assert_eq!(fill(&ledger, &Owner::Local, ceiling).0.len(), 16);
        // The only message of an owner may have more than its part.
        assert!(ledger.account(&named("ann")).charge(Held::Call, 9 * MIB, ceiling).is_ok());
    }

    #[test]
    fn who_holds_most_gives_way_the_newest_first_and_nobody_looks_at_all() {
        let (ledger, ceiling) = (Ledger::default(), ceiling(64));
        let notified = Arc::new(AtomicUsize::new(0));
        let mut held = Vec::new();
        for n in 0..100 {
            held.extend(ledger.account(&address(100 + n, 1)).charge(Held::Call, 100 << 10, ceiling));
        }
        let heavy: Vec<_> = (1..=4).map(|n| fill(&ledger, &address(n, 1), ceiling).0).collect();
        for (n, charge) in heavy.iter().flatten().enumerate() {
            let notified = notified.clone();
            charge.on_give_way(move || notified.store(n, Ordering::Relaxed));
        }
        ledger.0.ranking.forget_steps();
        let small = ledger.account(&address(9, 1)).charge(Held::Call, MIB, ceiling).unwrap();
        let gone = notified.load(Ordering::Relaxed);
        assert!([15, 31].contains(&gone), "the newest of one that holds most: {gone}");
        assert!(ledger.0.ranking.steps() <= 4, "{}", ledger.0.ranking.steps());
        // Those that hold most themselves are refused.
        assert_eq!(fill(&ledger, &address(2, 1), ceiling).1, Full::Owner);
        assert!(ledger.account(&Owner::Unknown).charge(Held::Call, 20 * MIB, ceiling).is_err());
        drop((small, heavy, held));
        assert_eq!(ledger.bytes(), 0);
    }

    #[test]
    fn the_table_of_limits_has_the_defaults() {
        let limits = Limits::default();
        let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
        let held = [
            None,
            Some(Held::Call),
            Some(Held::Waiting),
            Some(Held::Body),
            Some(Held::Session),
            Some(Held::Notification),
            Some(Held::Push),
            Some(Held::Notice),
        ];
        for (row, held) in rows::ROWS.iter().zip(held) {
            let all = held.map_or(limits.held_bytes, |held| limits.ceiling(held).kind);
            let text = format!("{} {} {}", row.owner, row.all, row.setting);
            if row.owner != "as above" {
                for bytes in [all / 4, all / 2, all - all / 4, all] {
                    assert!(text.contains(&mib(bytes)), "{}: {text}", mib(bytes));
                }
            }
            assert!(row.what.contains("charged") && !row.seen.is_empty());
        }
        assert!(rows::ROWS[1].setting.contains(&mib(limits.message_bytes)));
        assert_eq!(limits.ceiling(Held::Call).kind, limits.held_bytes);
    }

    #[test]
    fn a_kind_is_bounded_for_itself_and_a_change_of_size_is_charged() {
        let (ledger, small) = (Ledger::default(), Ceiling { kind: MIB, all: 64 * MIB });
        let ann = ledger.account(&named("ann"));
        let mut charge = Charge::new(ann.clone(), Held::Session);
        charge.set(MIB / 8, small).unwrap();
        let mut second = Charge::new(ann, Held::Session);
        assert_eq!(second.set(MIB / 4, small), Err(Full::Owner));
        assert_eq!(ledger.bytes(), MIB / 8 - FREE);
        second.force(MIB);
        assert_eq!(second.set(MIB, small), Ok(()), "as much as before is never too much");
        assert_eq!(second.set(MIB - 1, small), Ok(()), "less is never too much");
        second.set(10, small).unwrap();
        charge.set(FREE, small).unwrap();
        assert_eq!(ledger.bytes(), 0);
    }

    #[test]
    fn who_has_a_principal_does_not_give_way_to_who_has_none() {
        let (ledger, ceiling) = (Ledger::default(), ceiling(16));
        let asked = Arc::new(AtomicUsize::new(0));
        let mut held = Vec::new();
        // Four principals have all, a quarter each.
        for name in ["ann", "bob", "cat", "dan"] {
            let charge = ledger.account(&named(name)).charge(Held::Call, 4 * MIB + FREE, ceiling).unwrap();
            let count = asked.clone();
            charge.on_give_way(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            held.push(charge);
        }
        let refused = ledger.account(&address(1, 1)).charge(Held::Call, MIB + FREE, ceiling).unwrap_err();
        assert_eq!((refused, asked.load(Ordering::Relaxed)), (Full::All, 0));
        ledger.account(&named("eve")).charge(Held::Call, MIB + FREE, ceiling).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_not_held_any_more_does_not_give_way() {
        let (ledger, ceiling) = (Ledger::default(), ceiling(16));
        let asked = Arc::new(AtomicUsize::new(0));
        let ann = ledger.account(&named("ann"));
        let _other = ann.charge(Held::Call, 4 * MIB - MIB / 2, ceiling).unwrap();
        for lowered in [FREE, 0, 2 * FREE] {
            let mut charge = ann.charge(Held::Session, MIB / 4 + FREE, ceiling).unwrap();
            let count = asked.clone();
            charge.on_give_way(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            charge.force(lowered);
        }
        assert_eq!(Arc::strong_count(&asked), 1, "nothing is kept for what is gone");
        // What has become smaller frees what it holds now.
        let mut small = ann.charge(Held::Session, MIB / 4 + FREE, ceiling).unwrap();
        let count = asked.clone();
        small.on_give_way(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        small.set(2 * FREE, ceiling).unwrap();
        let rest: Vec<_> = ["bob", "cat", "dan"]
            .into_iter()
            .map(|name| ledger.account(&named(name)).charge(Held::Body, 4 * MIB + FREE, ceiling).unwrap())
            .collect();
        let refused = ledger.account(&named("eve")).charge(Held::Call, MIB, ceiling).unwrap_err();
        assert_eq!((refused, asked.load(Ordering::Relaxed)), (Full::All, 1));
        drop(rest);
    }
}
