//! Replies of Redis that are lost: what was done is done once, and nobody takes an error for an answer.

use std::time::Duration;

use bytes::Bytes;
use pintle::server::{
    http::log::{Appended, EventId, EventLog as _, Replay},
    store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store as _},
};
use pintle_redis::{Redis, RedisOptions};
use pintle_tasks::{StoredTask, TaskQuota, TaskStore as _, Updated};

use crate::{cut_link::CutLink, redis_server::RedisServer};

const LONG: Duration = Duration::from_secs(600);

async fn connect(link: &CutLink) -> Redis {
    Redis::connect_with(&link.url(), RedisOptions::default().lease(LONG)).await.unwrap()
}

/// Repeats an operation that fails until the connection is there again.
async fn until_connected<T>(mut operation: impl AsyncFnMut() -> std::io::Result<T>) -> T {
    for _ in 0..500 {
        match operation().await {
            Ok(done) => return done,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    panic!("the connection is not made again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_reply_is_lost_is_stored_once_and_nobody_notices() {
    let Some(server) = RedisServer::start().await else { return };
    let link = CutLink::new(server.port()).await;
    let tasks = connect(&link).await.tasks();
    let quota = TaskQuota::default();
    let mut task = StoredTask::new("t1", "ann", 4_000_000_000_000, b"body-0".to_vec());
    link.cut_reply_of("body-0");
    assert!(tasks.create(&task, &quota).await.unwrap(), "its own task is not taken for another one");
    assert_eq!(link.cuts(), 1);
    assert!(!tasks.create(&task, &quota).await.unwrap(), "an id is used once");
    (task.version, task.body) = (1, b"body-1".to_vec());
    link.cut_reply_of("body-1");
    assert_eq!(tasks.update(&task, &quota).await.unwrap(), Updated::Stored);
    assert_eq!(link.cuts(), 2);
    assert_eq!(tasks.update(&task, &quota).await.unwrap(), Updated::Outdated);
    assert_eq!(tasks.get("t1").await.unwrap(), Some(task.clone()));
    // It was counted once.
    let quota = TaskQuota::default();
    let room = (quota.account_tasks - 1..=quota.account_tasks).map(|number| format!("more-{number}"));
    for id in (1..quota.account_tasks - 1).map(|number| format!("task-{number}")).chain(room) {
        let more = StoredTask::new(&*id, "ann", 4_000_000_000_000, Vec::new());
        let fits = !id.ends_with(&quota.account_tasks.to_string());
        assert_eq!(tasks.create(&more, &quota).await.unwrap(), fits, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_reply_is_lost_is_there_with_the_version_that_was_written() {
    let Some(server) = RedisServer::start().await else { return };
    let link = CutLink::new(server.port()).await;
    let redis = connect(&link).await;
    let (key, life) = (Key::new(Space::Session, "s1"), Life::Idle(LONG));
    let read = GetOptions::default().prolong(LONG);
    link.cut_reply_of("pintle:s:{s1}");
    redis.put(key, Expected::Absent, b"first", life).await.unwrap_err();
    let found = until_connected(async || redis.get(key, read).await).await;
    let first = Got::Value { version: 1, value: b"first".to_vec() };
    assert_eq!(found, first, "it was put, and is not put again");
    // A read is repeated by itself.
    link.cut_reply_of("GETEX");
    assert_eq!(redis.get(key, read).await.unwrap(), first);
    link.cut_reply_of("EVAL");
    let put = async || redis.put(key, Expected::Version(1), b"second", life).await;
    put().await.unwrap_err();
    assert_eq!(
        until_connected(put).await,
        Put::Other,
        "the first one was done: its caller reads the version again"
    );
    let second = Got::Value { version: 2, value: b"second".to_vec() };
    assert_eq!(redis.get(key, read).await.unwrap(), second);
    assert_eq!(link.cuts(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_whose_reply_is_lost_is_in_its_stream_once() {
    let Some(server) = RedisServer::start().await else { return };
    let link = CutLink::new(server.port()).await;
    let redis = connect(&link).await;
    redis.open("s1", 1, Bytes::new()).await.unwrap();
    let mut id = EventId::start(1);
    id.place = 1;
    link.cut_reply_of("event-1");
    redis.append("s1", id, Bytes::from_static(b"event-1")).await.unwrap_err();
    let again = until_connected(async || redis.append("s1", id, Bytes::from_static(b"event-1")).await).await;
    assert_eq!(again, Appended::Taken);
    let Replay::Events(missed) = redis.after("s1", EventId::start(1)).await.unwrap() else {
        panic!("it is gone")
    };
    assert_eq!(missed.events.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_that_is_taken_is_known_by_the_stream_and_not_by_the_words_of_redis() {
    let Some(server) = RedisServer::start().await else { return };
    let link = CutLink::new(server.port()).await;
    link.reword("equal or smaller", "not large enough");
    let log = connect(&link).await;
    let event = |place: u64| {
        let mut id = EventId::start(1);
        id.place = place;
        id
    };
    log.open("s", 1, Bytes::new()).await.unwrap();
    for place in [1, 2] {
        assert_eq!(log.append("s", event(place), Bytes::from_static(b"x")).await.unwrap(), Appended::Done);
    }
    for place in [1, 2] {
        assert_eq!(log.append("s", event(place), Bytes::from_static(b"y")).await.unwrap(), Appended::Taken);
    }
    log.end("s", 1).await.unwrap();
    assert_eq!(log.append("s", event(3), Bytes::from_static(b"z")).await.unwrap(), Appended::Gone);
}
