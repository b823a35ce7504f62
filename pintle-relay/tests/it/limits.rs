//! How long connections to the server behind are kept, and how many are opened.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::Server;
use pintle_relay::Relay;
use serde_json::json;
use tokio::time::sleep;

use super::world::{self, ERAS, Seen, everything};
use crate::support::eras::{Client, R4};

const SECOND: Duration = Duration::from_secs(1);

/// A relay whose connector opens so many connections, and the number of those that it was asked for.
async fn counted(behind: &Server, limit: usize) -> (Relay, Arc<AtomicUsize>) {
    let (behind, opened) = (behind.clone(), Arc::<AtomicUsize>::default());
    let counter = opened.clone();
    let connector = move || {
        let connected = match counter.fetch_add(1, Ordering::SeqCst) < limit {
            true => behind.in_process().map_err(io::Error::other),
            false => Err(io::Error::new(io::ErrorKind::ResourceBusy, "there are enough of them")),
        };
        async { connected }
    };
    (Relay::connect(world::client(R4), connector).await.unwrap(), opened)
}

async fn add(client: &mut Client) {
    let called = client.call("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})).await;
    assert_eq!(called["result"]["content"][0]["text"], "3", "{called}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_call_has_no_connection_after_a_while() {
    for downstream in ERAS {
        let behind = world::server(&Seen::default());
        let (relay, opened) = counted(&behind, usize::MAX).await;
        let front = world::front(&relay.idle_timeout(100 * SECOND));
        let mut client = Client::open(&front, downstream, everything()).await;
        add(&mut client).await;
        for _ in 0..5 {
            sleep(90 * SECOND).await;
            add(&mut client).await;
        }
        assert_eq!((opened.load(Ordering::SeqCst), behind.sessions().len()), (2, 1), "{downstream}");
        sleep(110 * SECOND).await;
        assert_eq!(behind.sessions().len(), 0, "{downstream}");
        add(&mut client).await;
        assert_eq!((opened.load(Ordering::SeqCst), behind.sessions().len()), (3, 1), "{downstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_replaced_when_it_is_old_and_not_during_a_call() {
    for downstream in ERAS {
        let seen = Seen::default();
        let behind = world::server(&seen);
        let (relay, opened) = counted(&behind, usize::MAX).await;
        let front = world::front(&relay.max_lifetime(1000 * SECOND));
        let mut client = Client::open(&front, downstream, everything()).await;
        for _ in 0..9 {
            add(&mut client).await;
            sleep(100 * SECOND).await;
        }
        assert_eq!(opened.load(Ordering::SeqCst), 2, "{downstream}");
        for _ in 0..9 {
            sleep(100 * SECOND).await;
            add(&mut client).await;
        }
        assert_eq!(opened.load(Ordering::SeqCst), 3, "{downstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_connection_serves_all_clients_if_that_is_wanted() {
    for downstream in ERAS {
        let behind = world::server(&Seen::default());
        let (relay, opened) = counted(&behind, 1).await;
        let front = world::front(&relay.share_connection());
        for _ in 0..3 {
            let mut client = Client::open(&front, downstream, everything()).await;
            add(&mut client).await;
            assert!(client.call("tools/list", json!({})).await["result"]["tools"].is_array());
        }
        assert_eq!((opened.load(Ordering::SeqCst), behind.sessions().len()), (1, 1), "{downstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_has_no_more_is_overloaded_and_not_down() {
    for downstream in ERAS {
        let behind = world::server(&Seen::default());
        let (relay, _) = counted(&behind, 2).await;
        let front = world::front(&relay);
        let mut first = Client::open(&front, downstream, everything()).await;
        add(&mut first).await;
        let mut second = Client::open(&front, downstream, json!({})).await;
        let called = second.call("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})).await;
        let error = &called["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-31503), &json!("there are enough of them")));
        add(&mut first).await;
    }
}
