use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::ready,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::store::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};

/// A store of tasks in memory. They end with the process.
#[derive(Debug, Default)]
pub struct MemoryTaskStore(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    tasks: HashMap<String, StoredTask>,
    /// The ids of an owner's tasks, in order.
    owners: HashMap<String, BTreeSet<String>>,
    accounts: HashMap<String, AccountUsage>,
    total: AccountUsage,
    /// The ids by expiry.
    expiries: BTreeMap<u64, BTreeSet<String>>,
    /// The ids of the tasks that a process runs.
    holders: HashMap<String, BTreeSet<String>>,
    /// The end of the lease of each process.
    leases: HashMap<String, u64>,
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

    /// Returns the number of bytes that all tasks are counted for.
    pub fn bytes(&self) -> usize {
        self.lock().total.bytes
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

    fn insert(&mut self, task: StoredTask) {
        let bytes = task.bytes();
        let own = self.accounts.entry(task.account.clone()).or_default();
        for usage in [own, &mut self.total] {
            usage.tasks += 1;
            usage.bytes += bytes;
        }
        self.owners.entry(task.owner.clone()).or_default().insert(task.id.clone());
        self.expiries.entry(task.expires).or_default().insert(task.id.clone());
        if let Some(holder) = &task.holder {
            self.holders.entry(holder.clone()).or_default().insert(task.id.clone());
        }
        self.tasks.insert(task.id.clone(), task);
    }

    fn remove(&mut self, id: &str) -> Option<StoredTask> {
        let task = self.tasks.remove(id)?;
        let bytes = task.bytes();
        self.total.tasks -= 1;
        self.total.bytes -= bytes;
        if let Some(own) = self.accounts.get_mut(&task.account) {
            own.tasks -= 1;
            own.bytes -= bytes;
            if own.tasks == 0 {
                self.accounts.remove(&task.account);
            }
        }
        remove_id(&mut self.owners, &task.owner, id);
        if let Some(holder) = &task.holder {
            remove_id(&mut self.holders, holder, id);
        }
        if let Some(ids) = self.expiries.get_mut(&task.expires) {
            ids.remove(id);
            if ids.is_empty() {
                self.expiries.remove(&task.expires);
            }
        }
        Some(task)
    }
}

/// Removes an id from the set of a key, and the set with the last one.
fn remove_id(sets: &mut HashMap<String, BTreeSet<String>>, key: &str, id: &str) {
    if let Some(ids) = sets.get_mut(key) {
        ids.remove(id);
        if ids.is_empty() {
            sets.remove(key);
        }
    }
}

impl TaskStore for MemoryTaskStore {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        let mut table = self.lock();
        let created = !table.tasks.contains_key(&task.id)
            && task.bytes() <= quota.task_bytes
            && table.has_room(&task.account, 1, task.bytes(), quota);
        if created {
            table.insert(task.clone());
        }
        Box::pin(ready(Ok(created)))
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        let mut table = self.lock();
        let updated = match table.tasks.get(&task.id) {
            Some(stored) if stored.version.checked_add(1) == Some(task.version) => {
                let more = task.bytes().saturating_sub(stored.bytes());
                let fits = task.bytes() <= quota.task_bytes && table.has_room(&task.account, 0, more, quota);
                if more == 0 || fits {
                    table.remove(&task.id);
                    table.insert(task.clone());
                    Updated::Stored
                } else {
                    Updated::Full
                }
            }
            _ => Updated::Outdated,
        };
        Box::pin(ready(Ok(updated)))
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        let found = self.lock().tasks.get(id).cloned();
        Box::pin(ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        let table = self.lock();
        let ids = table.owners.get(owner).into_iter().flatten();
        let ids = ids.filter(|id| after.is_none_or(|after| id.as_str() > after)).take(limit);
        let found = ids.filter_map(|id| table.tasks.get(id).cloned()).collect();
        Box::pin(ready(Ok(found)))
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
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
    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        self.lock().leases.insert(holder.to_owned(), until);
        Box::pin(ready(Ok(())))
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        let mut table = self.lock();
        table.leases.retain(|_, until| *until > now);
        let dead = table.holders.iter().filter(|(holder, _)| !table.leases.contains_key(*holder));
        let ids = dead.flat_map(|(_, ids)| ids).take(limit);
        let found = ids.filter_map(|id| table.tasks.get(id).cloned()).collect();
        Box::pin(ready(Ok(found)))
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        let table = self.lock();
        let ids = table.holders.get(holder).into_iter().flatten();
        let unread = ids.filter(|id| table.tasks.get(*id).is_some_and(|task| task.unread));
        let found = unread.take(limit).cloned().collect();
        Box::pin(ready(Ok(found)))
    }

    fn is_durable(&self) -> bool {
        false
    }
}
