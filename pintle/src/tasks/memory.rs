use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::ready,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::store::{TaskFuture, TaskQuota, TaskRecord, TaskStore, Updated};

/// A store of tasks in memory. They end with the process.
#[derive(Debug, Default)]
pub struct MemoryTaskStore(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    tasks: HashMap<String, TaskRecord>,
    /// The ids of an owner's tasks, in order.
    owners: HashMap<String, BTreeSet<String>>,
    accounts: HashMap<String, AccountUsage>,
    total: AccountUsage,
    /// The ids by expiry.
    expiries: BTreeMap<u64, BTreeSet<String>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct AccountUsage {
    tasks: usize,
    bytes: usize,
}

impl MemoryTaskStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Returns whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns whether an account has room for more.
    fn has_room(&self, account: &str, tasks: usize, bytes: usize, quota: &TaskQuota) -> bool {
        let own = self.accounts.get(account).copied().unwrap_or_default();
        own.tasks + tasks <= quota.account_tasks
            && own.bytes.saturating_add(bytes) <= quota.account_bytes
            && self.total.tasks + tasks <= quota.tasks
            && self.total.bytes.saturating_add(bytes) <= quota.bytes
    }

    fn insert(&mut self, record: TaskRecord) {
        let bytes = record.bytes();
        let own = self.accounts.entry(record.account.clone()).or_default();
        for usage in [own, &mut self.total] {
            usage.tasks += 1;
            usage.bytes += bytes;
        }
        self.owners.entry(record.owner.clone()).or_default().insert(record.id.clone());
        self.expiries.entry(record.expires()).or_default().insert(record.id.clone());
        self.tasks.insert(record.id.clone(), record);
    }

    fn remove(&mut self, id: &str) -> Option<TaskRecord> {
        let record = self.tasks.remove(id)?;
        let bytes = record.bytes();
        self.total.tasks -= 1;
        self.total.bytes -= bytes;
        if let Some(own) = self.accounts.get_mut(&record.account) {
            own.tasks -= 1;
            own.bytes -= bytes;
            if own.tasks == 0 {
                self.accounts.remove(&record.account);
            }
        }
        if let Some(ids) = self.owners.get_mut(&record.owner) {
            ids.remove(id);
            if ids.is_empty() {
                self.owners.remove(&record.owner);
            }
        }
        if let Some(ids) = self.expiries.get_mut(&record.expires()) {
            ids.remove(id);
            if ids.is_empty() {
                self.expiries.remove(&record.expires());
            }
        }
        Some(record)
    }
}

impl TaskStore for MemoryTaskStore {
    fn create<'a>(&'a self, record: &'a TaskRecord, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        let mut table = self.lock();
        let created = !table.tasks.contains_key(&record.id)
            && table.has_room(&record.account, 1, record.bytes(), quota);
        if created {
            table.insert(record.clone());
        }
        Box::pin(ready(Ok(created)))
    }

    fn update<'a>(&'a self, record: &'a TaskRecord, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        let mut table = self.lock();
        let updated = match table.tasks.get(&record.id) {
            Some(stored) if stored.version.checked_add(1) == Some(record.version) => {
                let more = record.bytes().saturating_sub(stored.bytes());
                if more == 0 || table.has_room(&record.account, 0, more, quota) {
                    table.remove(&record.id);
                    table.insert(record.clone());
                    Updated::Stored
                } else {
                    Updated::Full
                }
            }
            _ => Updated::Outdated,
        };
        Box::pin(ready(Ok(updated)))
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<TaskRecord>> {
        let found = self.lock().tasks.get(id).cloned();
        Box::pin(ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<TaskRecord>> {
        let table = self.lock();
        let ids = table.owners.get(owner).into_iter().flatten();
        let ids = ids.filter(|id| after.is_none_or(|after| id.as_str() > after)).take(limit);
        let found = ids.filter_map(|id| table.tasks.get(id).cloned()).collect();
        Box::pin(ready(Ok(found)))
    }

    fn remove_expired<'a>(&'a self, now: u64) -> TaskFuture<'a, Option<u64>> {
        let mut table = self.lock();
        while let Some((expiry, ids)) = table.expiries.first_key_value()
            && *expiry <= now
        {
            for id in ids.clone() {
                table.remove(&id);
            }
        }
        let next = table.expiries.first_key_value().map(|(expiry, _)| *expiry);
        Box::pin(ready(Ok(next)))
    }
}
