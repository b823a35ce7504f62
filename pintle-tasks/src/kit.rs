//! Checks a [`TaskStore`] that you wrote.
//!
//! ```
//! use pintle_tasks::{MemoryTaskStore, kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = kit::check(|| async { Ok(MemoryTaskStore::new()) }).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle::{
    properties::{Property, PropertyResult, check as check_properties},
    transport::kit::Broken,
};
use tokio::task::JoinSet;

use super::{
    random,
    store::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated},
};

/// Checks every property on an empty store that `open` returns.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    S: TaskStore,
    F: Future<Output = io::Result<S>>,
{
    check_properties(&PROPERTIES, async || open().await.map(|store| Arc::new(store) as AnyTaskStore)).await
}

/// Checks every property on two handles of one empty store, as two processes have them: each operation goes to the other one.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check_pairs<S, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    S: TaskStore,
    F: Future<Output = io::Result<(S, S)>>,
{
    check_properties(&PROPERTIES, async || {
        let (first, second) = open().await?;
        Ok(Arc::new(HandlePair { handles: [first, second], is_second: AtomicBool::new(false) })
            as AnyTaskStore)
    })
    .await
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

const PROPERTIES: [Property<AnyTaskStore>; 9] = [
    ("a task is found as it was stored", |store| Box::pin(kept(store))),
    ("only the next version replaces a task", |store| Box::pin(versions(store))),
    ("of many concurrent updates of one version one is stored", |store| Box::pin(crowd(store))),
    ("an owner lists its own tasks in pages", |store| Box::pin(listed(store))),
    ("an account has its limits, and fills nobody else's", |store| Box::pin(limits(store))),
    ("expired tasks are removed, and give their room back", |store| Box::pin(expired(store))),
    ("a task without a live holder is an orphan", |store| Box::pin(orphaned(store))),
    ("a holder finds the tasks that others have changed", |store| Box::pin(unread(store))),
    ("there is one clock", |store| Box::pin(one_clock(store))),
];

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unreachable(error: io::Error) -> String {
    format!("the store returned an error: {error}")
}

fn name() -> Result<String, String> {
    random::name::<8>().map_err(|_| "the system has no random numbers".to_owned())
}

/// The expiry of the tasks of the kit: no clock is as late.
const EXPIRY: u64 = 4_000_000_000_000;

fn fresh(owner: &str) -> Result<StoredTask, String> {
    Ok(StoredTask::new(name()?, owner, EXPIRY, b"body".to_vec()))
}

fn require(holds: bool, otherwise: &str) -> PropertyResult {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

async fn kept(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let mut task = fresh("ann")?;
    require(store.get(&task.id).await.map_err(unreachable)?.is_none(), "an unknown id was found")?;
    require(store.create(&task, &quota).await.map_err(unreachable)?, "the task was refused")?;
    let found = store.get(&task.id).await.map_err(unreachable)?;
    require(found.as_ref() == Some(&task), "the task was changed by storing it")?;
    // Every byte, and lengths of more than one page.
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    (task.version, task.body) = (1, bytes);
    (task.holder, task.unread) = (Some(name()?), true);
    let stored = store.update(&task, &quota).await.map_err(unreachable)?;
    require(stored == Updated::Stored, "an update was refused")?;
    let found = store.get(&task.id).await.map_err(unreachable)?;
    require(found.as_ref() == Some(&task), "the task was changed by updating it")?;
    (task.version, task.holder, task.unread) = (2, None, false);
    store.update(&task, &quota).await.map_err(unreachable)?;
    let found = store.get(&task.id).await.map_err(unreachable)?;
    require(found.as_ref() == Some(&task), "the end of the task was changed by storing it")
}

async fn versions(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let mut task = fresh("ann")?;
    let early = store.update(&task, &quota).await.map_err(unreachable)?;
    require(early == Updated::Outdated, "an update created a task")?;
    store.create(&task, &quota).await.map_err(unreachable)?;
    require(!store.create(&task, &quota).await.map_err(unreachable)?, "an id was used twice")?;
    for (version, expected) in
        [(0, Updated::Outdated), (2, Updated::Outdated), (1, Updated::Stored), (1, Updated::Outdated)]
    {
        task.version = version;
        let updated = store.update(&task, &quota).await.map_err(unreachable)?;
        require(updated == expected, &format!("an update to version {version} was {updated:?}"))?;
    }
    Ok(())
}

async fn crowd(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let task = fresh("ann")?;
    store.create(&task, &quota).await.map_err(unreachable)?;
    let mut updates = JoinSet::new();
    for writer in 0..32_u8 {
        let (store, mut task) = (store.clone(), task.clone());
        (task.version, task.body) = (1, vec![writer]);
        updates.spawn(async move { store.update(&task, &quota).await });
    }
    let updates = updates.join_all().await;
    let stored = updates.iter().filter(|updated| matches!(updated, Ok(Updated::Stored))).count();
    require(stored == 1, &format!("{stored} of 32 were stored"))
}

async fn listed(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let (ann, bob) = (name()?, name()?);
    let mut ids = Vec::new();
    for _ in 0..5 {
        let task = fresh(&ann)?;
        store.create(&task, &quota).await.map_err(unreachable)?;
        ids.push(task.id);
    }
    store.create(&fresh(&bob)?, &quota).await.map_err(unreachable)?;
    ids.sort_unstable();
    let mut found: Vec<String> = Vec::new();
    for _ in 0..4 {
        let page = store.list(&ann, found.last().map(String::as_str), 2).await.map_err(unreachable)?;
        require(page.len() <= 2, "a page is too long")?;
        found.extend(page.into_iter().map(|task| task.id));
    }
    require(found == ids, "the list is not that of the owner's tasks, in the order of their ids")
}

async fn limits(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota { account_tasks: 2, account_bytes: 4_000, ..TaskQuota::default() };
    let (ann, bob) = (name()?, name()?);
    let mut created = Vec::new();
    for fits in [true, true, false] {
        let task = fresh(&ann)?;
        let stored = store.create(&task, &quota).await.map_err(unreachable)?;
        require(stored == fits, "the number of tasks is not limited as it should be")?;
        created.push(task);
    }
    let refused = created.pop().map(|task| task.id).unwrap_or_default();
    require(store.get(&refused).await.map_err(unreachable)?.is_none(), "a refused task was stored")?;
    require(store.create(&fresh(&bob)?, &quota).await.map_err(unreachable)?, "another account is full too")?;
    let Some(mut task) = created.pop() else { return Ok(()) };
    (task.version, task.body) = (1, vec![0; 4_000]);
    let full = store.update(&task, &quota).await.map_err(unreachable)?;
    require(full == Updated::Full, "the bytes of an account are not limited")?;
    let found = store.get(&task.id).await.map_err(unreachable)?;
    require(found.is_some_and(|found| found.version == 0), "a refused update was stored")?;
    let small = TaskQuota { task_bytes: 300, ..TaskQuota::default() };
    task.body = vec![0; 300];
    let full = store.update(&task, &small).await.map_err(unreachable)?;
    require(full == Updated::Full, "the bytes of a task are not limited")?;
    let mut large = fresh(&bob)?;
    large.body = vec![0; 300];
    require(!store.create(&large, &small).await.map_err(unreachable)?, "a task that is too large was stored")
}

async fn expired(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota { account_tasks: 1, ..TaskQuota::default() };
    let owner = name()?;
    let mut task = fresh(&owner)?;
    task.expires = 1_500;
    store.create(&task, &quota).await.map_err(unreachable)?;
    let next = store.remove_expired(1_499).await.map_err(unreachable)?;
    require(next == Some(1_500), "the next expiry is not known")?;
    require(store.get(&task.id).await.map_err(unreachable)?.is_some(), "a task was removed too early")?;
    store.remove_expired(1_500).await.map_err(unreachable)?;
    require(store.get(&task.id).await.map_err(unreachable)?.is_none(), "an expired task is still there")?;
    require(store.create(&fresh(&owner)?, &quota).await.map_err(unreachable)?, "its room was not given back")
}

async fn orphaned(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let (dead, live) = (name()?, name()?);
    let mut orphan = fresh("ann")?;
    orphan.holder = Some(dead.clone());
    let mut held = fresh("ann")?;
    held.holder = Some(live.clone());
    store.create(&fresh("ann")?, &quota).await.map_err(unreachable)?;
    for task in [&orphan, &held] {
        store.create(task, &quota).await.map_err(unreachable)?;
    }
    store.renew(&dead, 1_000).await.map_err(unreachable)?;
    store.renew(&live, 2_000).await.map_err(unreachable)?;
    let none = store.orphans(999, 10).await.map_err(unreachable)?;
    require(none.is_empty(), "a task whose holder has a lease is an orphan")?;
    let found = store.orphans(1_000, 10).await.map_err(unreachable)?;
    require(found == [orphan.clone()], "the orphan was not found, or others were")?;
    require(store.orphans(2_000, 1).await.map_err(unreachable)?.len() == 1, "the limit does not hold")?;
    (orphan.version, orphan.holder) = (1, Some(live.clone()));
    store.update(&orphan, &quota).await.map_err(unreachable)?;
    store.renew(&live, 3_000).await.map_err(unreachable)?;
    let none = store.orphans(2_999, 10).await.map_err(unreachable)?;
    require(none.is_empty(), "a task that was taken over is an orphan")
}

async fn unread(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let holder = name()?;
    let mut task = fresh("ann")?;
    task.holder = Some(holder.clone());
    store.create(&task, &quota).await.map_err(unreachable)?;
    let none = store.unread(&holder, 10).await.map_err(unreachable)?;
    require(none.is_empty(), "a task that nobody has changed is unread")?;
    (task.version, task.unread) = (1, true);
    store.update(&task, &quota).await.map_err(unreachable)?;
    let found = store.unread(&holder, 10).await.map_err(unreachable)?;
    require(found == [task.id.clone()], "the task that was changed is not found")?;
    require(store.unread(&name()?, 10).await.map_err(unreachable)?.is_empty(), "another holder finds it")?;
    (task.version, task.unread) = (2, false);
    store.update(&task, &quota).await.map_err(unreachable)?;
    let none = store.unread(&holder, 10).await.map_err(unreachable)?;
    require(none.is_empty(), "a task that was read is unread")
}

async fn one_clock(store: AnyTaskStore) -> PropertyResult {
    let mut before = 0;
    for _ in 0..8 {
        let Some(now) = store.now().await.map_err(unreachable)? else {
            return require(before == 0, "only one of the handles has a clock");
        };
        require(now >= before, "the time goes back from one handle to the other")?;
        before = now;
    }
    require(before > 0, "the clock stands at the beginning of time")
}
