//! Checks a [`TaskStore`] that you wrote.
//!
//! ```
//! use pintle::tasks::{MemoryTaskStore, kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = kit::check(|| async { Ok(MemoryTaskStore::new()) }).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{future::Future, io, sync::Arc};

use pintle_types::{
    RpcError, method,
    schema::{InputRequest, TaskStatus},
};
use tokio::task::JoinSet;

use super::store::{TaskOutcome, TaskQuota, TaskRecord, TaskStore, Updated};
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    server::call::random,
    transport::kit::Broken,
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

type AnyTaskStore = Arc<dyn TaskStore>;

const PROPERTIES: [Property<AnyTaskStore>; 6] = [
    ("a task is found as it was stored", |store| Box::pin(kept(store))),
    ("only the next version replaces a record", |store| Box::pin(versions(store))),
    ("of many concurrent updates of one version one is stored", |store| Box::pin(crowd(store))),
    ("an owner lists its own tasks in pages", |store| Box::pin(listed(store))),
    ("an account has its limits, and fills nobody else's", |store| Box::pin(limits(store))),
    ("expired tasks are removed, and give their room back", |store| Box::pin(expired(store))),
];

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unreachable(error: io::Error) -> String {
    format!("the store returned an error: {error}")
}

fn name() -> Result<String, String> {
    let bytes: [u8; 8] = random::bytes().map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn fresh(owner: &str) -> Result<TaskRecord, String> {
    Ok(TaskRecord::new(name()?, owner, "tool", 1_000))
}

fn require(holds: bool, otherwise: &str) -> PropertyResult {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

async fn kept(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let mut record = fresh("ann")?;
    require(store.get(&record.id).await.map_err(unreachable)?.is_none(), "an unknown id was found")?;
    require(store.create(&record, &quota).await.map_err(unreachable)?, "the task was refused")?;
    let request = InputRequest::new(method::ROOTS_LIST, &serde_json::json!({"z": 1, "a": [2]}));
    record.questions.insert("key".into(), request.map_err(|error| error.to_string())?);
    (record.status, record.status_message) = (TaskStatus::InputRequired, Some("waits".into()));
    (record.version, record.updated) = (1, 2_000);
    let stored = store.update(&record, &quota).await.map_err(unreachable)?;
    require(stored == Updated::Stored, "an update was refused")?;
    let found = store.get(&record.id).await.map_err(unreachable)?;
    require(found.as_ref() == Some(&record), "the record was changed by storing it")?;
    for outcome in [
        TaskOutcome::Error(RpcError::internal("no").with_data(&serde_json::json!({"z": 1, "a": 2}))),
        TaskOutcome::Result(r#"{"content":[],"z":{"b":1,"a":2}}"#.parse().unwrap_or_default()),
    ] {
        record.outcome = Some(outcome);
        record.version += 1;
        store.update(&record, &quota).await.map_err(unreachable)?;
        let found = store.get(&record.id).await.map_err(unreachable)?;
        require(found.as_ref() == Some(&record), "the outcome was changed by storing it")?;
    }
    Ok(())
}

async fn versions(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let mut record = fresh("ann")?;
    let early = store.update(&record, &quota).await.map_err(unreachable)?;
    require(early == Updated::Outdated, "an update created a task")?;
    store.create(&record, &quota).await.map_err(unreachable)?;
    require(!store.create(&record, &quota).await.map_err(unreachable)?, "an id was used twice")?;
    for (version, expected) in
        [(0, Updated::Outdated), (2, Updated::Outdated), (1, Updated::Stored), (1, Updated::Outdated)]
    {
        record.version = version;
        let updated = store.update(&record, &quota).await.map_err(unreachable)?;
        require(updated == expected, &format!("an update to version {version} was {updated:?}"))?;
    }
    Ok(())
}

async fn crowd(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota::default();
    let record = fresh("ann")?;
    store.create(&record, &quota).await.map_err(unreachable)?;
    let mut updates = JoinSet::new();
    for writer in 0..32 {
        let (store, mut record) = (store.clone(), record.clone());
        record.version = 1;
        record.status_message = Some(writer.to_string());
        updates.spawn(async move { store.update(&record, &quota).await });
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
        let record = fresh(&ann)?;
        store.create(&record, &quota).await.map_err(unreachable)?;
        ids.push(record.id);
    }
    store.create(&fresh(&bob)?, &quota).await.map_err(unreachable)?;
    ids.sort_unstable();
    let mut found: Vec<String> = Vec::new();
    for _ in 0..4 {
        let page = store.list(&ann, found.last().map(String::as_str), 2).await.map_err(unreachable)?;
        require(page.len() <= 2, "a page is too long")?;
        found.extend(page.into_iter().map(|record| record.id));
    }
    require(found == ids, "the list is not that of the owner's tasks, in the order of their ids")
}

async fn limits(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota { account_tasks: 2, account_bytes: 4_000, ..TaskQuota::default() };
    let (ann, bob) = (name()?, name()?);
    let mut created = Vec::new();
    for fits in [true, true, false] {
        let record = fresh(&ann)?;
        let stored = store.create(&record, &quota).await.map_err(unreachable)?;
        require(stored == fits, "the number of tasks is not limited as it should be")?;
        created.push(record);
    }
    let refused = created.pop().map(|record| record.id).unwrap_or_default();
    require(store.get(&refused).await.map_err(unreachable)?.is_none(), "a refused task was stored")?;
    require(store.create(&fresh(&bob)?, &quota).await.map_err(unreachable)?, "another account is full too")?;
    let Some(mut record) = created.pop() else { return Ok(()) };
    record.version = 1;
    record.status_message = Some("m".repeat(4_000));
    let full = store.update(&record, &quota).await.map_err(unreachable)?;
    require(full == Updated::Full, "the bytes of an account are not limited")?;
    let found = store.get(&record.id).await.map_err(unreachable)?;
    require(found.is_some_and(|found| found.version == 0), "a refused update was stored")
}

async fn expired(store: AnyTaskStore) -> PropertyResult {
    let quota = TaskQuota { account_tasks: 1, ..TaskQuota::default() };
    let owner = name()?;
    let mut record = fresh(&owner)?;
    record.ttl = 500;
    store.create(&record, &quota).await.map_err(unreachable)?;
    let next = store.remove_expired(1_499).await.map_err(unreachable)?;
    require(next == Some(1_500), "the next expiry is not known")?;
    require(store.get(&record.id).await.map_err(unreachable)?.is_some(), "a task was removed too early")?;
    store.remove_expired(1_500).await.map_err(unreachable)?;
    require(store.get(&record.id).await.map_err(unreachable)?.is_none(), "an expired task is still there")?;
    require(store.create(&fresh(&owner)?, &quota).await.map_err(unreachable)?, "its room was not given back")
}
