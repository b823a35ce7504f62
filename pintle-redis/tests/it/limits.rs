//! How much one session can make Redis keep.

use bytes::Bytes;
use pintle::server::http::{
    log::{Appended, EventId, EventLog as _, Replay},
    nodes::{NodeEvent, Nodes as _},
};
use pintle_redis::RedisOptions;

use crate::redis_server::RedisServer;

fn event(stream: u64, place: u64) -> EventId {
    let mut id = EventId::start(stream);
    id.place = place;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_logs_too_much_loses_its_streams_and_nobody_elses() {
    let Some(server) = RedisServer::start().await else { return };
    let redis = server.connect(&RedisOptions::default().session_bytes(10_000)).await.unwrap();
    let data = Bytes::from(vec![b'x'; 4_000]);
    for session in ["loud", "quiet"] {
        redis.open(session, 1, Bytes::new()).await.unwrap();
    }
    for place in [1, 2] {
        assert_eq!(redis.append("loud", event(1, place), data.clone()).await.unwrap(), Appended::Done);
    }
    let refused = redis.append("loud", event(1, 3), data.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("more than 10000 bytes"), "{refused}");
    // Another stream of the session is no way around it: it ends, and is not kept.
    redis.open("loud", 3, Bytes::new()).await.unwrap();
    assert_eq!(redis.append_last("loud", event(3, 1), data.clone()).await.unwrap(), Appended::Done);
    assert_eq!(redis.after("loud", event(3, 0)).await.unwrap(), Replay::Gone);
    assert_eq!(redis.append("quiet", event(1, 1), data).await.unwrap(), Appended::Done);
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_keeps_its_newest_events_and_what_was_dropped_is_gone() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default().stream_events(10);
    let redis = server.connect(&options).await.unwrap();
    redis.open("s", 1, Bytes::new()).await.unwrap();
    let mut id = EventId::start(1);
    // Redis drops events in blocks of a hundred.
    for place in 1..=300 {
        id.place = place;
        assert_eq!(redis.append("s", id, Bytes::from_static(b"event")).await.unwrap(), Appended::Done);
    }
    for dropped in [0, 1, 50] {
        id.place = dropped;
        assert!(matches!(redis.after("s", id).await.unwrap(), Replay::Gone), "{dropped}");
    }
    for (kept, later) in [(290, 10), (299, 1), (300, 0)] {
        id.place = kept;
        let Replay::Events(missed) = redis.after("s", id).await.unwrap() else { panic!("{kept} is gone") };
        assert_eq!(missed.events.len(), later);
    }
    id.place = 301;
    assert!(matches!(redis.after("s", id).await.unwrap(), Replay::Gone), "it was never given");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbox_is_bounded_in_bytes_and_what_was_read_is_deleted() {
    let Some(server) = RedisServer::start().await else { return };
    let options = RedisOptions::default();
    let (one, other) = (server.connect(&options).await.unwrap(), server.connect(&options).await.unwrap());
    let long = Bytes::from(vec![b'x'; 1 << 20]);
    // The other process does not handle its messages: it reads some, and the rest stays in its inbox.
    let mut sent = 0;
    let full = loop {
        match one.send_to(other.id(), long.clone()).await {
            Ok(there) => assert!(there),
            Err(full) => break full,
        }
        sent += 1;
        assert!(sent < 200, "there is no limit");
    };
    assert!(full.to_string().contains("is full"), "{full}");
    assert!(sent >= 60, "{sent}");
    let receive = async |bytes: usize| loop {
        if let NodeEvent::Message(message) = other.receive().await.unwrap() {
            break assert_eq!(message.len(), bytes);
        }
    };
    for _ in 0..sent {
        receive(long.len()).await;
    }
    // What follows is read only after what was read before has been deleted.
    for _ in 0..2 {
        assert!(one.send_to(other.id(), Bytes::from_static(b"short")).await.unwrap());
        receive(5).await;
    }
    let kept = server.memory().await;
    assert!(kept < 16 << 20, "{kept}");
    assert_eq!(server.keys_without_expiry().await, Vec::<String>::new());
}
