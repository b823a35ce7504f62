//! The relays that a request passes: they are counted, and none is passed twice.

use pintle::{
    Server,
    server::{Cx, tool},
};
use serde_json::{Value, json};

use super::world::{self, ERAS};
use crate::support::eras::{Client, R5};

const META: &str = "dev.pintle/relays";

/// A server with a tool that returns the relays that its call has passed.
fn behind() -> Server {
    Server::new("behind", "1.0.0").tool(tool("passed", |cx: Cx| async move {
        serde_json::to_value(cx.meta()).unwrap()[META].to_string()
    }))
}

async fn passed(client: &mut Client, before: Value) -> Value {
    let mut params = json!({"name": "passed"});
    if !before.is_null() {
        params["_meta"] = json!({ META: before });
    }
    client.call("tools/call", params).await
}

#[tokio::test(start_paused = true)]
async fn each_relay_is_counted_once() {
    for downstream in ERAS {
        for upstream in ERAS {
            let first = world::relayed(&behind(), upstream).await;
            let second = world::relayed(&first, upstream).await;
            let mut client = Client::open(&second, downstream, json!({})).await;
            let answered = passed(&mut client, Value::Null).await;
            let ids: Vec<String> =
                serde_json::from_str(answered["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
            assert_eq!(ids.len(), 2, "{answered}");
            assert_ne!(ids[0], ids[1]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_passed_too_many_is_refused() {
    let front = world::relayed(&behind(), R5).await;
    for downstream in ERAS {
        let mut client = Client::open(&front, downstream, json!({})).await;
        let ids = |count: usize| (0..count).map(|at| format!("r{at}")).collect::<Vec<_>>();
        let allowed = passed(&mut client, json!(ids(15))).await;
        let text = allowed["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Vec<String>>(text).unwrap().len(), 16, "{text}");
        let refused = passed(&mut client, json!(ids(16))).await;
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(message.contains("`behind`") && message.contains("limit"), "{message}");
        let listed = client.call("tools/list", json!({"_meta": {META: ids(16)}})).await;
        assert_eq!(listed["error"]["message"], message);
        let refused = passed(&mut client, json!("none")).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_back_is_refused() {
    for downstream in ERAS {
        for upstream in ERAS {
            // Two servers that relay to each other.
            let (first, second) = (behind(), Server::new("second", "1.0.0").may_change());
            let to_second = world::relay(&second, upstream).await.forward_unlisted();
            let to_first = world::relay(&first, upstream).await.forward_unlisted();
            first.add_provider(to_second).unwrap();
            second.add_provider(to_first).unwrap();
            let mut client = Client::open(&first, downstream, json!({})).await;
            client.listen(&[]).await;
            for (method, params) in [("tools/list", json!({})), ("tools/call", json!({"name": "nothing"}))] {
                let refused = client.call(method, params).await;
                let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
                assert!(message.contains("`second`") && message.contains("circle"), "{method}: {message}");
            }
            assert!(passed(&mut client, Value::Null).await["result"].is_object());
        }
    }
}
