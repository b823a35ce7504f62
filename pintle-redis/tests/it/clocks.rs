//! Processes whose clocks differ from that of Redis by a minute, in both directions.
//!
//! Only two facts in Redis have a time that a process has computed or received: values and states that are used once. All others have
//! durations, which Redis measures, and tasks have the time of Redis.

use std::time::Duration;

use pintle::server::{
    http::{
        log::{EventId, EventLog as _},
        nodes::Nodes as _,
    },
    store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store as _},
};
use pintle_redis::{Redis, RedisOptions};
use pintle_tasks::TaskStore as _;

use crate::{
    kits::first_use,
    redis_folder::ask,
    redis_server::{RedisServer, remaining},
};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// The time of Redis, in milliseconds of the Unix epoch.
async fn now(server: &RedisServer) -> u64 {
    let (seconds, micros): (u64, u64) = ask(server.port(), "TIME").await.unwrap();
    seconds * 1000 + micros / 1000
}

async fn two_processes(server: &RedisServer) -> (Redis, Redis) {
    let options = RedisOptions::default();
    (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_used_once_by_processes_with_any_clock() {
    let Some(server) = RedisServer::start().await else { return };
    let (a, b) = two_processes(&server).await;
    let now = now(&server).await / 1000;
    // A process that is a minute behind accepts what has expired for the others, and one that is ahead what has not been issued yet.
    for (expires, nonce) in [(now - 60, 1), (now, 2), (now + 60, 3), (now + 360, 4)] {
        assert!(first_use(&a, &[nonce; 32], expires).await.unwrap());
        assert!(!first_use(&b, &[nonce; 32], expires).await.unwrap(), "{expires} at {now}");
    }
    // Whether this one was used is not known any more.
    assert!(!first_use(&a, &[5; 32], now - 3600).await.unwrap());
    assert!(first_use(&a, &[6; 32], u64::MAX).await.unwrap(), "it is kept as long as Redis can");
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_used_once_by_processes_with_any_clock() {
    let Some(server) = RedisServer::start().await else { return };
    let (a, b) = two_processes(&server).await;
    let now = now(&server).await;
    for (expires, state) in [(now - MINUTE, 1), (now + MINUTE, 2), (now + HOUR, 3), (u64::MAX, 4)] {
        let (id, life) = (format!("{state:02x}"), Life::Until(expires.saturating_add(10 * MINUTE)));
        let key = Key::new(Space::State, &id);
        assert_eq!(a.put(key, Expected::Absent, b"running", life).await.unwrap(), Put::Done(1));
        assert_eq!(b.put(key, Expected::Absent, b"running", life).await.unwrap(), Put::Other);
        assert_eq!(a.put(key, Expected::Version(1), b"done", life).await.unwrap(), Put::Done(2));
        let done = Got::Value { version: 2, value: b"done".to_vec() };
        assert_eq!(b.get(key, GetOptions::default()).await.unwrap(), done, "{expires} at {now}");
    }
    // Whether this one was used is not known any more.
    let life = Life::Until(now - HOUR + 10 * MINUTE);
    let forgotten = a.put(Key::new(Space::State, "05"), Expected::Absent, b"running", life).await;
    assert_eq!(forgotten.unwrap(), Put::Forgotten);
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_else_has_durations_that_redis_measures() {
    let Some(server) = RedisServer::start().await else { return };
    let lease = Duration::from_millis(40 * MINUTE);
    let open = Duration::from_millis(50 * MINUTE);
    let options = RedisOptions::default().lease(lease).event_age(open, Duration::from_millis(30 * MINUTE));
    let a = server.connect(&options).await.unwrap();
    a.join("s", Duration::from_millis(20 * MINUTE)).await.unwrap();
    a.open("s", 1, Default::default()).await.unwrap();
    a.append("s", EventId { place: 1, ..EventId::start(1) }, "e".into()).await.unwrap();
    a.open("s", 2, Default::default()).await.unwrap();
    a.end("s", 2).await.unwrap();
    let inbox = format!("pintle:{{nodes}}:in:{}", a.id());
    for (key, minutes) in [
        ("pintle:h:{s}", 20),
        ("pintle:l:{s}:1", 50),
        ("pintle:l:{s}:2", 30),
        ("pintle:o:{s}", 50),
        (&inbox, 40),
    ] {
        let left = remaining(&server, key).await;
        assert!(left > (minutes - 5) * MINUTE && left <= minutes * MINUTE, "{key}: {left} ms");
    }
    // The clock of tasks is that of Redis.
    let (before, time) = (now(&server).await, a.tasks().now().await.unwrap().unwrap());
    assert!((before..=now(&server).await).contains(&time));
}
