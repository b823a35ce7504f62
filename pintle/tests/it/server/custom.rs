//! Methods and notifications of the application's own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{Cx, method},
    types::RpcError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::eras::{ALL, Client, R1, R2, R3, R4, R5, each};

#[derive(Deserialize)]
struct Sum {
    numbers: Vec<i64>,
}

#[derive(Serialize)]
struct Total {
    total: i64,
}

#[tokio::test]
async fn a_custom_method_works_in_every_revision() {
    let sum = |cx: Cx, Sum { numbers }: Sum| async move {
        assert_eq!(cx.method(), "example/sum");
        match numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number)) {
            Some(total) => Ok(Total { total }),
            None => Err(RpcError::invalid_params("too large").with_data(&json!({"most": i64::MAX}))),
        }
    };
    let server = Server::new("s", "0").method(method("example/sum", sum));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let answer = client.call("example/sum", json!({"numbers": [1, 2, 3]})).await;
        assert_eq!(answer["result"]["total"], 6, "{answer}");
        assert_eq!(answer["result"].get("resultType").is_some(), client.revision == R5);
        let wrong = client.call("example/sum", json!({"numbers": "x"})).await;
        assert_eq!(wrong["error"]["code"], -32602, "malformed params are never an unknown method");
        let failed = client.call("example/sum", json!({"numbers": [i64::MAX, 1]})).await;
        assert_eq!(failed["error"]["data"]["most"], i64::MAX);
        assert_eq!(client.call("example/product", json!({})).await["error"]["code"], -32601);
    })
    .await;
}

#[tokio::test]
async fn a_notification_is_handled_in_every_revision() {
    let (count, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, notify) = (count.clone(), received.clone());
    let server =
        Server::new("s", "0").on_notification("notifications/example/step", move |notification, peer| {
            let (counted, notify) = (counted.clone(), notify.clone());
            async move {
                let by: usize = notification.params.unwrap().decode_member("by").unwrap().unwrap();
                counted.fetch_add(by + usize::from(peer.is_some()), Ordering::SeqCst);
                notify.notify_one();
            }
        });
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        count.store(0, Ordering::SeqCst);
        client.notify("notifications/example/step", json!({"by": 10})).await;
        received.notified().await;
        // A session says who it is once; without one a notification says nothing of its sender.
        let expected = if client.revision == R5 { 10 } else { 11 };
        assert_eq!(count.load(Ordering::SeqCst), expected);
        client.notify("notifications/example/unheard", json!({})).await;
    })
    .await;
}

#[tokio::test]
async fn a_session_notifies_that_its_directories_changed() {
    let received = Arc::new(Notify::new());
    let notify = received.clone();
    let server = Server::new("s", "0").on_notification("notifications/roots/list_changed", move |_, _| {
        let notify = notify.clone();
        async move { notify.notify_one() }
    });
    // Without a session the next call brings its own.
    each(&server, &[R1, R2, R3, R4], json!({"roots": {"listChanged": true}}), async |client: &mut Client| {
        client.notify("notifications/roots/list_changed", json!({})).await;
        received.notified().await;
    })
    .await;
}
