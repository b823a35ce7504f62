//! How a relay finds the entry that a call names.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Cx, Next, around, tool},
};
use serde_json::json;

use super::world::{self, ERAS, Seen};
use crate::support::eras::{Client, R5};

/// A server that counts the requests for its tools.
fn counted(server: Server) -> (Server, Arc<AtomicUsize>) {
    let lists = Arc::new(AtomicUsize::new(0));
    let counter = lists.clone();
    let server = server.layer(&around(move |cx: Cx, next: Next| {
        if cx.method() == "tools/list" {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        next.run(cx)
    }));
    (server, lists)
}

#[tokio::test(start_paused = true)]
async fn unknown_names_have_the_list_read_once_a_second() {
    for upstream in ERAS {
        let (behind, lists) = counted(world::server(&Seen::default()));
        let front = world::relayed(&behind, upstream).await;
        let mut client = Client::open(&front, R5, json!({})).await;
        client.listen(&[]).await;
        for at in 0..50 {
            let unknown = client.call("tools/call", json!({"name": format!("nothing-{at}")})).await;
            assert!(unknown["error"]["message"].as_str().unwrap().starts_with("no such tool"), "{unknown}");
        }
        assert_eq!(lists.load(Ordering::SeqCst), 1, "{upstream}");
        // A change is seen at once.
        behind.add_tool(tool("new", |_: Cx| async { "it is new" })).unwrap();
        client.receive().await;
        assert_eq!(client.tool("new").await, "it is new");
        assert_eq!(lists.load(Ordering::SeqCst), 2, "{upstream}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        client.call("tools/call", json!({"name": "nothing"})).await;
        assert_eq!(lists.load(Ordering::SeqCst), 3, "{upstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_unknown_names_at_the_same_time_read_the_list_once() {
    let (behind, lists) = counted(world::server(&Seen::default()));
    let front = world::relayed(&behind, R5).await;
    let mut client = Client::open(&front, R5, json!({})).await;
    let mut ids = Vec::new();
    for at in 0..20 {
        ids.push(client.send("tools/call", json!({"name": format!("nothing-{at}")})).await);
    }
    // They are answered in order: each waits for the same list.
    for id in ids {
        assert_eq!(client.until(id).await["error"]["code"], -32602);
    }
    assert_eq!(lists.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_two_relays_reads_each_of_them_a_bounded_number_of_times() {
    let (first, first_lists) = counted(world::server(&Seen::default()));
    let mut second = Server::new("second", "1.0.0");
    for at in 0..40 {
        second = second.tool(tool(format!("tool-{at}"), |_: Cx| async { "" }));
    }
    let (second, second_lists) = counted(second);
    let relays = (world::relay(&first, R5).await, world::relay(&second, R5).await);
    let front = Server::new("front", "1.0.0").provider(relays.0).provider(relays.1);
    let mut client = Client::open(&front, R5, json!({})).await;
    let listed = client.call("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 40, "{listed}");
    assert_eq!((first_lists.load(Ordering::SeqCst), second_lists.load(Ordering::SeqCst)), (1, 1));
}
