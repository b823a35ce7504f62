use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    ALL, Books, Ceiling, FREE, Full, Held, Owner,
    tally::{Tally, level},
};

/// The account of one owner. Clones are the same account.
#[derive(Clone)]
pub struct Account(pub(super) Arc<AccountEntry>);

/// An owner, or a network of owners.
pub(super) struct AccountEntry {
    books: Arc<Books>,
    owner: Owner,
    pub(super) number: u32,
    network: Option<Account>,
    pub(super) tally: Tally,
    /// The levels that it is ranked with.
    pub(super) levels: Tally,
    /// The charges that can give way, in that order: the newest first.
    yielding: Mutex<Yielding>,
}

type Yielding = BTreeMap<(Held, Reverse<u32>), (usize, GiveWay)>;

/// Has something that is held given up soon. It must not block.
type GiveWay = Box<dyn Fn() + Send + Sync>;

/// The number of charges that give way to one newcomer.
const YIELDS: usize = 64;

impl AccountEntry {
    pub(super) fn new(books: &Arc<Books>, owner: Owner, network: Option<Account>) -> Self {
        let number = books.number();
        let (tally, levels) = (Tally::default(), Tally::default());
        Self { books: books.clone(), owner, number, network, tally, levels, yielding: Mutex::default() }
    }

    fn yielding(&self) -> MutexGuard<'_, Yielding> {
        self.yielding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has charges give way, of one kind or of all. Returns their bytes.
    fn give_way(&self, kind: Option<Held>, wanted: usize) -> usize {
        let mut freed = 0;
        for _ in 0..YIELDS {
            let next = {
                let mut yielding = self.yielding();
                let first = (kind.unwrap_or(Held::Notice), Reverse(u32::MAX));
                let next = yielding.range(first..).next().map(|(key, _)| *key);
                next.filter(|(held, _)| kind.is_none_or(|kind| kind == *held))
                    .and_then(|key| yielding.remove(&key))
            };
            // Called without the lock: it may drop the charge.
            let Some((bytes, give_way)) = next else { break };
            give_way();
            freed += bytes;
            if freed >= wanted {
                break;
            }
        }
        freed
    }
}

impl Drop for AccountEntry {
    fn drop(&mut self) {
        self.books.ranking.remove(self.number, &self.levels);
        let mut accounts = self.books.accounts();
        // The owner may have another account meanwhile.
        if accounts.get(&self.owner).is_some_and(|entry| entry.strong_count() == 0) {
            accounts.remove(&self.owner);
        }
    }
}

impl Account {
    /// Charges bytes that are held from now on. The first [`FREE`] are not charged.
    ///
    /// # Errors
    ///
    /// The limit that is reached. The owners that hold most have been asked to give way then, if the newcomer is not one of them.
    pub fn charge(&self, held: Held, bytes: usize, ceiling: Ceiling) -> Result<Charge, Full> {
        let mut charge = Charge::new(self.clone(), held);
        charge.set(bytes, ceiling).map(|()| charge)
    }

    /// Returns the account that is compared with others: that of the network, if there is one.
    fn compared(&self) -> &AccountEntry {
        self.0.network.as_ref().map_or(&self.0, |network| &network.0)
    }

    /// The sums that bytes are part of, each with the quarters of all that it may have.
    fn sums(&self) -> [(Option<&Tally>, usize, Full); 4] {
        let AccountEntry { books, owner, network, tally, .. } = &*self.0;
        let (quarters, full) = if owner.is_one() { (1, Full::Owner) } else { (4, Full::All) };
        [
            (Some(tally), quarters, full),
            (network.as_ref().map(|network| &network.0.tally), 2, Full::Network),
            (owner.is_anonymous().then_some(&books.anonymous), 3, Full::All),
            (Some(&books.total), 4, Full::All),
        ]
    }

    fn add(&self, held: Held, bytes: usize) {
        for tally in self.sums().into_iter().filter_map(|(tally, ..)| tally) {
            tally.add(held as usize, bytes);
        }
        self.rank(held);
    }

    fn subtract(&self, held: Held, bytes: usize) {
        for tally in self.sums().into_iter().filter_map(|(tally, ..)| tally) {
            tally.subtract(held as usize, bytes);
        }
        self.rank(held);
    }

    /// Adds bytes to a charge of so many, unless a limit would be exceeded.
    fn try_add(
        &self,
        held: Held,
        bytes: usize,
        before: usize,
        ceiling: Ceiling,
    ) -> Result<(), (Full, Option<Held>)> {
        let limits = [(Some(held), ceiling.kind), (None, ceiling.all)];
        for (at, (tally, quarters, full)) in self.sums().into_iter().enumerate() {
            let Some(tally) = tally else { continue };
            let sums = tally.add(held as usize, bytes);
            let exceeded = sums.iter().zip(limits).find(|(sum, (_, limit))| {
                // The only message of an owner may have more than its part.
                let is_only = at == 0 && **sum == before.saturating_add(bytes);
                **sum > limit - limit / 4 * (4 - quarters) && !is_only
            });
            if let Some((_, (kind, _))) = exceeded {
                let done = self.sums().into_iter().take(at + 1).filter_map(|(tally, ..)| tally);
                done.for_each(|tally| tally.subtract(held as usize, bytes));
                return Err((full, kind));
            }
        }
        self.rank(held);
        Ok(())
    }

    fn rank(&self, held: Held) {
        let account = self.0.network.as_ref().unwrap_or(self);
        account.0.books.ranking.update(held as usize, &account.0);
    }

    /// Has those that hold more give way. Returns whether that is enough.
    fn make_room(&self, kind: Option<Held>, bytes: usize) -> bool {
        let (own, place) = (self.compared(), kind.map_or(ALL, |held| held as usize));
        let above = own.books.ranking.above(place, level(own.tally.get(place).saturating_add(bytes)));
        let mut freed = 0;
        for entry in above.iter().filter_map(Weak::upgrade) {
            // Those with a principal do not give way to those without one.
            if own.owner.is_anonymous() && !entry.owner.is_anonymous() {
                continue;
            }
            freed += entry.give_way(kind, bytes - freed);
            if freed >= bytes {
                return true;
            }
        }
        false
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Account").field(&self.0.owner).field(&self.0.tally.get(ALL)).finish()
    }
}

/// Bytes that are charged to an account. They are released on drop.
#[derive(Debug, Default)]
pub struct Charge {
    account: Option<Account>,
    held: Held,
    bytes: usize,
    /// Larger for newer charges.
    number: u32,
    /// Whether the account knows how it is given up.
    yields: AtomicBool,
}

impl Charge {
    /// Creates an empty charge.
    pub fn new(account: Account, held: Held) -> Self {
        let number = account.0.books.number();
        Self { account: Some(account), held, bytes: 0, number, yields: AtomicBool::new(false) }
    }

    /// Returns the account. An empty charge may have none.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// Returns the size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the size, if the limits allow it.
    ///
    /// # Errors
    ///
    /// The limit that is reached. The size stays as it was.
    pub fn set(&mut self, bytes: usize, ceiling: Ceiling) -> Result<(), Full> {
        let (before, after) = (charged(self.bytes), charged(bytes));
        if let Some(account) = &self.account {
            if after <= before {
                self.release(before - after);
            } else if let Err((full, kind)) = account.try_add(self.held, after - before, before, ceiling) {
                // What gives way is dropped soon: until then there is more, by as much as that.
                if full != Full::All || !account.make_room(kind, after - before) {
                    return Err(full);
                }
                account.add(self.held, after - before);
            }
        }
        self.resized(bytes);
        Ok(())
    }

    /// Sets the size without checking the limits, for what was admitted before.
    pub fn force(&mut self, bytes: usize) {
        if let Some(account) = self.account.as_ref().filter(|_| charged(bytes) > charged(self.bytes)) {
            account.add(self.held, charged(bytes) - charged(self.bytes));
        } else {
            self.release(charged(self.bytes) - charged(bytes));
        }
        self.resized(bytes);
    }

    /// Notes the size. What gives way later frees that.
    fn resized(&mut self, bytes: usize) {
        self.bytes = bytes;
        if let Some(account) = self.account.as_ref().filter(|_| *self.yields.get_mut()) {
            let mut yielding = account.compared().yielding();
            if let Some((known, _)) = yielding.get_mut(&(self.held, Reverse(self.number))) {
                *known = charged(bytes);
            }
        }
    }

    /// Sets how what is held is given up if others need the room. Nothing is set if nothing is charged.
    pub fn on_give_way(&self, give_way: impl Fn() + Send + Sync + 'static) {
        if let Some(account) = self.account.as_ref().filter(|_| charged(self.bytes) > 0) {
            let entry = (charged(self.bytes), Box::new(give_way) as GiveWay);
            account.compared().yielding().insert((self.held, Reverse(self.number)), entry);
            self.yields.store(true, Ordering::Relaxed);
        }
    }

    fn release(&self, bytes: usize) {
        if let Some(account) = self.account.as_ref().filter(|_| bytes > 0) {
            account.subtract(self.held, bytes);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release(charged(self.bytes));
        if let Some(account) = self.account.as_ref().filter(|_| *self.yields.get_mut()) {
            // Dropped without the lock.
            let gone = account.compared().yielding().remove(&(self.held, Reverse(self.number)));
            drop(gone);
        }
    }
}

/// Returns the part of a size that is charged.
fn charged(bytes: usize) -> usize {
    bytes.saturating_sub(FREE)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::ledger::Ledger;

    const MIB: usize = 1 << 20;

    fn named(name: &str) -> Owner {
        Owner::Principal(name.into())
    }

    fn ceiling(mib: usize) -> Ceiling {
        Ceiling { kind: mib * MIB, all: mib * MIB }
    }

    #[test]
    fn a_charge_that_grows_is_charged_for_what_it_has_more() {
        let (ledger, ceiling) = (Ledger::default(), ceiling(16));
        let mut charge = ledger.account(&named("ann")).charge(Held::Call, MIB + FREE, ceiling).unwrap();
        charge.set(2 * MIB + FREE, ceiling).unwrap();
        assert_eq!(ledger.bytes(), 2 * MIB);
        charge.force(3 * MIB + FREE);
        assert_eq!(ledger.bytes(), 3 * MIB);
        // The last of the quarter that one may have.
        charge.set(4 * MIB + FREE, ceiling).unwrap();
        drop(charge);
        assert_eq!(ledger.bytes(), 0);
    }

    /// Fills a ledger: with a charge of four mebibytes each, or of one each, that are counted when they give way.
    fn full(ledger: &Ledger, each: usize, asked: &Arc<AtomicUsize>) -> Vec<Charge> {
        let mut held = Vec::new();
        for name in ["ann", "bob", "cat", "dan"] {
            for _ in 0..4 * MIB / each {
                let account = ledger.account(&named(name));
                let charge = account.charge(Held::Call, each + FREE, ceiling(16)).unwrap();
                let asked = asked.clone();
                charge.on_give_way(move || {
                    asked.fetch_add(1, Ordering::Relaxed);
                });
                held.push(charge);
            }
        }
        held
    }

    #[test]
    fn as_many_give_way_as_are_needed() {
        for (each, bytes, count) in [(MIB, 2 * MIB, 2), (2 * MIB, 3 * MIB, 2), (MIB / 2, MIB, 2)] {
            let (ledger, asked) = (Ledger::default(), Arc::new(AtomicUsize::new(0)));
            let held = full(&ledger, each, &asked);
            let eve = ledger.account(&named("eve")).charge(Held::Call, bytes + FREE, ceiling(16)).unwrap();
            assert_eq!(asked.load(Ordering::Relaxed), count, "{bytes} bytes, {each} each");
            drop((held, eve));
            assert_eq!(ledger.bytes(), 0);
        }
    }

    #[test]
    fn the_second_owner_gives_way_for_the_rest_only() {
        let (ledger, asked) = (Ledger::default(), Arc::new(AtomicUsize::new(0)));
        let mut held = full(&ledger, MIB, &asked);
        // The one that is asked first has only one that can give way.
        held.truncate(3 * 4);
        let dan = ledger.account(&named("dan"));
        held.push(dan.charge(Held::Call, 3 * MIB + FREE, ceiling(16)).unwrap());
        let yields = dan.charge(Held::Call, MIB + FREE, ceiling(16)).unwrap();
        let count = asked.clone();
        yields.on_give_way(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let eve = ledger.account(&named("eve")).charge(Held::Call, 2 * MIB + FREE, ceiling(16)).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        drop((eve, yields, held));
    }

    #[test]
    fn others_give_way_for_what_a_charge_has_more() {
        let (ledger, asked) = (Ledger::default(), Arc::new(AtomicUsize::new(0)));
        let held = full(&ledger, MIB, &asked);
        let mut eve = Charge::new(ledger.account(&named("eve")), Held::Call);
        eve.force(MIB + FREE);
        eve.set(2 * MIB + FREE, ceiling(16)).unwrap();
        assert_eq!((asked.load(Ordering::Relaxed), ledger.bytes()), (1, 18 * MIB));
        drop((eve, held));
        assert_eq!(ledger.bytes(), 0);
    }

    #[test]
    fn what_is_charged_nothing_is_not_asked_to_give_way() {
        let (ledger, asked) = (Ledger::default(), Arc::new(AtomicUsize::new(0)));
        let small = ledger.account(&named("ann")).charge(Held::Call, FREE, ceiling(16)).unwrap();
        let count = asked.clone();
        small.on_give_way(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(Arc::strong_count(&asked), 1, "nothing is kept");
    }
}
