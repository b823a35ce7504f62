//! Processes whose clocks differ from that of Redis by a minute, in both directions.
//!
//! Only two facts in Redis have a time that a process has computed or received: values and states that are used once. All others have
//! durations, which Redis measures, and tasks have the time of Redis.

use std::time::Duration;

use pintle::server::{
    Claimed, NonceStore as _, ReplayGuard as _, Reply, UsedState,
    http::{
        log::{EventId, EventLog as _},
        nodes::Nodes as _,
    },
};
use pintle_redis::{Redis, RedisOptions};
use pintle_tasks::TaskStore as _;

use crate::{
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
        assert!(a.first_use(&[nonce; 32], expires).await.unwrap());
        assert!(!b.first_use(&[nonce; 32], expires).await.unwrap(), "{expires} at {now}");
    }
    // Whether this one was used is not known any more.
    assert!(!a.first_use(&[5; 32], now - 3600).await.unwrap());
    assert!(a.first_use(&[6; 32], u64::MAX).await.unwrap(), "it is kept as long as Redis can");
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_used_once_by_processes_with_any_clock() {
    let Some(server) = RedisServer::start().await else { return };
    let (a, b) = two_processes(&server).await;
    let now = now(&server).await;
    for (expires, state) in [(now - MINUTE, 1), (now + MINUTE, 2), (now + HOUR, 3), (u64::MAX, 4)] {
        let used = UsedState::new([state; 32], [9; 32], expires);
        let claim = match a.claim(&used).await.unwrap() {
            Claimed::First(claim) => claim,
            other => panic!("{other:?}: {expires} at {now}"),
        };
        a.complete(&used, &claim, Reply::new(false, "done")).await.unwrap();
        match b.claim(&used).await.unwrap() {
            Claimed::Replied(reply) => assert_eq!(&*reply.body, "done"),
            other => panic!("{other:?}: {expires} at {now}"),
        }
    }
    // Whether this one was used is not known any more.
    let forgotten = UsedState::new([5; 32], [9; 32], now - HOUR);
    assert!(matches!(a.claim(&forgotten).await.unwrap(), Claimed::Used));
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
