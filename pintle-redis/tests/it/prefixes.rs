//! Services with different prefixes in one Redis: they share nothing.

use std::time::Duration;

use bytes::Bytes;
use pintle::server::{
    http::{
        log::{EventId, EventLog as _, Replay},
        nodes::{NodeEvent, Nodes as _},
    },
    store::{Expected, Key, Life, Put, Space, Store},
};
use pintle_redis::RedisOptions;
use pintle_tasks::{StoredTask, TaskQuota, TaskStore as _};
use tokio::time::timeout;

use crate::{
    faults::{INITIALIZE, PING, SESSION, post},
    kits::first_use,
    redis_server::RedisServer,
};

const SOON: Duration = Duration::from_secs(20);
const LATE: u64 = 4_000_000_000_000;

async fn claim(store: &impl Store) -> Put {
    store.put(Key::new(Space::State, "07"), Expected::Absent, b"running", Life::Until(LATE)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_with_different_prefixes_share_nothing() {
    let Some(server) = RedisServer::start().await else { return };
    let own = server.connect(&RedisOptions::default()).await.unwrap();
    let prefixed = server.connect(&RedisOptions::default().prefix("pintle:s")).await.unwrap();
    let named = own.service("s").await.unwrap();
    let again = own.service("s").await.unwrap();

    let notes = pintle::Server::new("notes", "1");
    let http = notes.http().unwrap().shared(own.clone());
    let opened = post(&http, None, INITIALIZE).await;
    let session = opened.headers()[SESSION].to_str().unwrap().to_owned();
    let task = StoredTask::new("task", "ann", LATE, vec![1]);
    let start = EventId::start(1);
    own.open("s1", 1, Bytes::new()).await.unwrap();
    assert!(own.tasks().create(&task, &TaskQuota::default()).await.unwrap());
    assert!(first_use(&own, &[7; 32], LATE / 1000).await.unwrap());
    assert_eq!(claim(&own).await, Put::Done(1));
    assert_eq!(claim(&own).await, Put::Other);
    own.join("s1", SOON).await.unwrap();
    own.publish(Bytes::from_static(b"not for others")).await.unwrap();

    for other in [&prefixed, &named] {
        let notes = pintle::Server::new("notes", "1");
        let elsewhere = notes.http().unwrap().shared(other.clone());
        assert_eq!(post(&elsewhere, Some(&session), PING).await.status(), 404);
        assert!(matches!(other.after("s1", start).await.unwrap(), Replay::Gone));
        assert_eq!(other.tasks().get("task").await.unwrap(), None);
        assert!(!other.send_to(own.id(), Bytes::new()).await.unwrap());
        assert_eq!(other.send("s1", Bytes::new()).await.unwrap(), 0);
    }
    // `pintle:s` is the prefix of both of these.
    assert!(first_use(&prefixed, &[7; 32], LATE / 1000).await.unwrap());
    assert!(!first_use(&named, &[7; 32], LATE / 1000).await.unwrap());
    assert_eq!(claim(&prefixed).await, Put::Done(1));

    // The first change that a service hears is its own fleet's.
    again.publish(Bytes::from_static(b"for the same")).await.unwrap();
    let received = timeout(SOON, async {
        loop {
            if let NodeEvent::Change(change) = named.receive().await.unwrap() {
                break change;
            }
        }
    });
    assert_eq!(received.await.unwrap(), "for the same");
    assert_eq!(post(&http, Some(&session), PING).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prefix_that_a_cluster_would_take_for_a_tag_is_refused() {
    let Some(server) = RedisServer::start().await else { return };
    for prefix in ["{notes}", "a{", "}b"] {
        let error = server.connect(&RedisOptions::default().prefix(prefix)).await.unwrap_err();
        assert!(error.to_string().contains("has a brace"), "{error}");
    }
}
