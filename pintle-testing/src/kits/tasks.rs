//! Checks a [`TaskStore`] that you wrote.
//!
//! ```
//! use pintle_tasks::MemoryTaskStore;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let open = async || Ok(kits::two_handles(MemoryTaskStore::new()));
//! if let Err(broken) = kits::tasks::check(open).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_tasks::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};

use super::harness::{Broken, Check, Checked, at_once, fresh as fresh_bytes, require};

/// Checks every property, on two handles of one empty store that `open` returns: each operation goes to the other one.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S: TaskStore>(open: impl AsyncFn() -> io::Result<[S; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        Ok(Arc::new(HandlePair { handles: open().await?, is_second: AtomicBool::new(false) }) as AnyTaskStore)
    });
    check.that("a task is found as it was stored", kept).await;
    check.that("only the next version replaces a task", versions).await;
    check.that("of many concurrent updates of one version one is stored", crowd).await;
    check.that("an owner lists its own tasks in pages", listed).await;
    check.that("an account has its limits, and fills nobody else's", limits).await;
    check.that("expired tasks are removed, and give their room back", expired).await;
    check.that("a task without a live holder is an orphan", orphaned).await;
    check.that("a holder finds the tasks that others have changed", unread).await;
    check.that("there is one clock", one_clock).await;
    check.end()
}

/// Two handles of one store that are used in turn.
#[derive(Debug)]
struct HandlePair<S> {
    handles: [S; 2],
    /// Whether the second one is next.
    is_second: AtomicBool,
}

impl<S> HandlePair<S> {
    fn next(&self) -> &S {
        let [first, second] = &self.handles;
        if self.is_second.fetch_xor(true, Ordering::Relaxed) { second } else { first }
    }
}

impl<S: TaskStore> TaskStore for HandlePair<S> {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        self.next().create(task, quota)
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        self.next().update(task, quota)
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        self.next().get(id)
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        self.next().list(owner, after, limit)
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
        self.next().remove_expired(now)
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        self.next().renew(holder, until)
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        self.next().orphans(now, limit)
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        self.next().unread(holder, limit)
    }

    fn now(&self) -> TaskFuture<'_, Option<u64>> {
        self.next().now()
    }
}

type AnyTaskStore = Arc<dyn TaskStore>;

fn name() -> String {
    fresh_bytes::<8>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The expiry of the tasks of the kit: no clock is as late.
const EXPIRY: u64 = 4_000_000_000_000;

fn fresh(owner: &str) -> StoredTask {
    StoredTask::new(name(), owner, EXPIRY, b"body".to_vec())
}

async fn kept(store: AnyTaskStore) -> Checked {
    let quota = TaskQuota::default();
    let mut task = fresh("ann");
    require(store.get(&task.id).await?.is_none(), "an unknown id was found")?;
    require(store.create(&task, &quota).await?, "the task was refused")?;
    let found = store.get(&task.id).await?;
    require(found.as_ref() == Some(&task), "the task was changed by storing it")?;
    // Every byte, and lengths of more than one page.
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    (task.version, task.body) = (1, bytes);
    (task.holder, task.unread) = (Some(name()), true);
    let stored = store.update(&task, &quota).await?;
    require(stored == Updated::Stored, "an update was refused")?;
    let found = store.get(&task.id).await?;
    require(found.as_ref() == Some(&task), "the task was changed by updating it")?;
    (task.version, task.holder, task.unread) = (2, None, false);
    store.update(&task, &quota).await?;
    let found = store.get(&task.id).await?;
    require(found.as_ref() == Some(&task), "the end of the task was changed by storing it")
}

async fn versions(store: AnyTaskStore) -> Checked {
    let quota = TaskQuota::default();
    let mut task = fresh("ann");
    let early = store.update(&task, &quota).await?;
    require(early == Updated::Outdated, "an update created a task")?;
    store.create(&task, &quota).await?;
    require(!store.create(&task, &quota).await?, "an id was used twice")?;
    for (version, expected) in
        [(0, Updated::Outdated), (2, Updated::Outdated), (1, Updated::Stored), (1, Updated::Outdated)]
    {
        task.version = version;
        let updated = store.update(&task, &quota).await?;
        require(updated == expected, &format!("an update to version {version} was {updated:?}"))?;
    }
    Ok(())
}

async fn crowd(store: AnyTaskStore) -> Checked {
    let quota = TaskQuota::default();
    let task = fresh("ann");
    store.create(&task, &quota).await?;
    let updates = (0..32_u8).map(|writer| {
        let (store, mut task) = (store.clone(), task.clone());
        (task.version, task.body) = (1, vec![writer]);
        async move { store.update(&task, &quota).await }
    });
    let updates = at_once(updates).await?;
    let stored = updates.iter().filter(|updated| matches!(updated, Ok(Updated::Stored))).count();
    require(stored == 1, &format!("{stored} of 32 were stored"))
}

async fn listed(store: AnyTaskStore) -> Checked {
    let quota = TaskQuota::default();
    let (ann, bob) = (name(), name());
    let mut ids = Vec::new();
    for _ in 0..5 {
        let task = fresh(&ann);
        store.create(&task, &quota).await?;
        ids.push(task.id);
    }
    store.create(&fresh(&bob), &quota).await?;
    ids.sort_unstable();
    let mut found: Vec<String> = Vec::new();
    for _ in 0..4 {
        let page = store.list(&ann, found.last().map(String::as_str), 2).await?;
        require(page.len() <= 2, "a page is too long")?;
        found.extend(page.into_iter().map(|task| task.id));
    }
    require(found == ids, "the list is not that of the owner's tasks, in the order of their ids")
}

async fn limits(store: AnyTaskStore) -> Checked {
    let mut quota = TaskQuota::default();
    (quota.account_tasks, quota.account_bytes) = (2, 4_000);
    let (ann, bob) = (name(), name());
    let mut created = Vec::new();
    for fits in [true, true, false] {
        let task = fresh(&ann);
        let stored = store.create(&task, &quota).await?;
        require(stored == fits, "the number of tasks is not limited as it should be")?;
        created.push(task);
    }
    let refused = created.pop().map(|task| task.id).unwrap_or_default();
    require(store.get(&refused).await?.is_none(), "a refused task was stored")?;
    require(store.create(&fresh(&bob), &quota).await?, "another account is full too")?;
    let Some(mut task) = created.pop() else { return Ok(()) };
    (task.version, task.body) = (1, vec![0; 4_000]);
    let full = store.update(&task, &quota).await?;
    require(full == Updated::Full, "the bytes of an account are not limited")?;
    let found = store.get(&task.id).await?;
    require(found.is_some_and(|found| found.version == 0), "a refused update was stored")?;
    let mut small = TaskQuota::default();
    small.task_bytes = 300;
    task.body = vec![0; 300];
    let full = store.update(&task, &small).await?;
    require(full == Updated::Full, "the bytes of a task are not limited")?;
    let mut large = fresh(&bob);
    large.body = vec![0; 300];
    require(!store.create(&large, &small).await?, "a task that is too large was stored")
}

async fn expired(store: AnyTaskStore) -> Checked {
    let mut quota = TaskQuota::default();
    quota.account_tasks = 1;
    let owner = name();
    let mut task = fresh(&owner);
    task.expires = 1_500;
    store.create(&task, &quota).await?;
    let next = store.remove_expired(1_499).await?;
    require(next == Some(1_500), "the next expiry is not known")?;
    require(store.get(&task.id).await?.is_some(), "a task was removed too early")?;
    store.remove_expired(1_500).await?;
    require(store.get(&task.id).await?.is_none(), "an expired task is still there")?;
    require(store.create(&fresh(&owner), &quota).await?, "its room was not given back")
}

async fn orphaned(store: AnyTaskStore) -> Checked {
    let quota = TaskQuota::default();
    let (dead, live) = (name(), name());
    let mut orphan = fresh("ann");
    orphan.holder = Some(dead.clone());
    let mut held = fresh("ann");
    held.holder = Some(live.clone());
    store.create(&fresh("ann"), &quota).await?;
    for task in [&orphan, &held] {
        store.create(task, &quota).await?;
    }
    store.renew(&dead, 1_000).await?;
    store.renew(&live, 2_000).await?;
    let none = store.orphans(999, 10).await?;
    require(none.is_empty(), "a task whose holder has a lease is an orphan")?;
    let found = store.orphans(1_000, 10).await?;
    require(found == [orphan.clone()], "the orphan was not found, or others were")?;
    require(store.orphans(2_000, 1).await?.len() == 1, "the limit does not hold")?;
    (orphan.version, orphan.holder) = (1, Some(live.clone()));
    store.update(&orphan, &quota).await?;
    store.renew(&live, 3_000).await?;
    let none = store.orphans(2_999, 10).await?;
    require(none.is_empty(), "a task that was taken over is an orphan")
}

async fn unread(store: AnyTaskStore) -> Checked {
    let quota = TaskQuota::default();
    let holder = name();
    let mut task = fresh("ann");
    task.holder = Some(holder.clone());
    store.create(&task, &quota).await?;
    let none = store.unread(&holder, 10).await?;
    require(none.is_empty(), "a task that nobody has changed is unread")?;
    (task.version, task.unread) = (1, true);
    store.update(&task, &quota).await?;
    let found = store.unread(&holder, 10).await?;
    require(found == [task.id.clone()], "the task that was changed is not found")?;
    require(store.unread(&name(), 10).await?.is_empty(), "another holder finds it")?;
    (task.version, task.unread) = (2, false);
    store.update(&task, &quota).await?;
    let none = store.unread(&holder, 10).await?;
    require(none.is_empty(), "a task that was read is unread")
}

async fn one_clock(store: AnyTaskStore) -> Checked {
    let mut before = 0;
    for _ in 0..8 {
        let Some(now) = store.now().await? else {
            return require(before == 0, "only one of the handles has a clock");
        };
        require(now >= before, "the time goes back from one handle to the other")?;
        before = now;
    }
    require(before > 0, "the clock stands at the beginning of time")
}
