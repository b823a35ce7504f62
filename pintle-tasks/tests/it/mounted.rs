//! Tasks of mounted servers: for a client they are those of the server that it is connected to.

use std::{sync::atomic::Ordering, time::Duration};

use pintle::server::{ResultLimit, Transform};
use pintle::{
    Server,
    content::Link,
    server::{Authenticated, Cx, Next, Prefix, around, tool},
    types::schema::{CallToolResult, ContentBlock},
};
use pintle_relay::Relay;
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use super::same_tool::{Acts, answer, capabilities, poll, server};
use crate::support::eras::{Client, R4, R5};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Three levels: `desk` has `mall`, which has the shop.
fn desk(acts: &Acts) -> Server {
    Server::new("desk", "1").mount("mall", Server::new("mall", "1").mount("shop", server(acts)))
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_mounted_server_is_polled_to_its_end_and_after_it() {
    let acts = Acts::default();
    let mut client = Client::open(&desk(&acts), R5, capabilities()).await;
    let created = client.call("tools/call", json!({"name": "mall_shop_order"})).await["result"].clone();
    assert_eq!(created["resultType"], "task", "{created}");
    let id = created["taskId"].as_str().unwrap();
    let task = poll(&mut client, id).await;
    assert_eq!(task["result"]["content"][0]["text"], "tea to Bergen, act 1", "{task}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let later = client.call("tasks/get", json!({"taskId": id})).await["result"].clone();
    assert_eq!((&later["status"], &later["taskId"]), (&json!("completed"), &json!(id)), "{later}");
    assert_eq!(acts.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn in_a_session_its_questions_status_and_result_have_the_id_that_the_client_knows() {
    let acts = Acts::default();
    let mut client = Client::open(&desk(&acts), R4, json!({"elicitation": {"form": {}}})).await;
    let call = json!({"name": "mall_shop_order", "task": {}});
    let created = client.call("tools/call", call).await["result"]["task"].clone();
    let id = created["taskId"].clone();
    let known = id.clone();
    client.answer = Box::new(move |_, params| {
        assert_eq!(params["_meta"][RELATED], json!({"taskId": known}), "{params}");
        answer(params)
    });
    let result = client.call("tasks/result", json!({"taskId": id})).await["result"].clone();
    assert_eq!(result["content"][0]["text"], "tea to Bergen, act 1", "{result}");
    assert_eq!(result["_meta"][RELATED], json!({"taskId": id}));
    assert_eq!(client.questions, 2);
    let task = client.call("tasks/get", json!({"taskId": id})).await["result"].clone();
    assert_eq!((&task["status"], &task["taskId"]), (&json!("completed"), &id), "{task}");
    let received = client.received();
    let statuses: Vec<_> =
        received.iter().filter(|message| message["method"] == "notifications/tasks/status").collect();
    assert!(!statuses.is_empty(), "{received:?}");
    assert!(statuses.iter().all(|message| message["params"]["taskId"] == id), "{statuses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_a_server_without_tasks_becomes_one_of_the_server_around_it() {
    let shop = Server::new("shop", "1").tool(tool("pack", |cx: Cx| async move {
        assert!(cx.detach().await);
        tokio::time::sleep(Duration::from_secs(5)).await;
        "packed"
    }));
    let desk = Server::new("desk", "1").with(Tasks::new()).mount("shop", shop);
    let mut client = Client::open(&desk, R5, capabilities()).await;
    let created = client.call("tools/call", json!({"name": "shop_pack"})).await["result"].clone();
    assert_eq!(created["resultType"], "task", "{created}");
    let task = poll(&mut client, created["taskId"].as_str().unwrap()).await;
    assert_eq!(task["result"]["content"][0]["text"], "packed", "{task}");
}

/// The result of a task has passed the mounts when it is stored, and does not get their namespaces again when it is polled.
#[tokio::test(start_paused = true)]
async fn uris_in_the_result_of_a_task_have_the_namespaces_once() {
    let link = async || CallToolResult::new(vec![ContentBlock::from(Link::new("note://1", "note"))]);
    let shop = Server::new("shop", "1").with(Tasks::new()).tool(tool("note", link).task("required"));
    let mall = Server::new("mall", "1").mount(Prefix::new("shop").uris(), shop);
    let desk = Server::new("desk", "1").mount(Prefix::new("mall").uris(), mall);

    let mut client = Client::open(&desk, R5, capabilities()).await;
    let created = client.call("tools/call", json!({"name": "mall_shop_note"})).await["result"].clone();
    let task = poll(&mut client, created["taskId"].as_str().unwrap()).await;
    assert_eq!(task["result"]["content"][0]["uri"], "note://mall/shop/1", "{task}");

    let mut client = Client::open(&desk, R4, json!({})).await;
    let call = json!({"name": "mall_shop_note", "task": {}});
    let created = client.call("tools/call", call).await["result"]["task"].clone();
    let result = client.call("tasks/result", json!({"taskId": created["taskId"]})).await["result"].clone();
    assert_eq!(result["content"][0]["uri"], "note://mall/shop/1", "{result}");
}

/// A caller that a layer has authenticated owns its tasks, in a mounted server too.
#[tokio::test(start_paused = true)]
async fn a_task_belongs_to_the_caller_that_a_layer_has_named() {
    async fn named(cx: Cx, next: Next) -> pintle::server::Outcome {
        let name: Value = cx.params().decode_member("_meta").ok().flatten().unwrap_or_default();
        let name = name["user"].as_str().unwrap_or("nobody").to_owned();
        next.run(cx.with(Authenticated::new(name))).await
    }
    let acts = Acts::default();
    for (server, name) in [(server(&acts), "order"), (desk(&acts), "mall_shop_order")] {
        let server = server.layer(&around(named));
        let mut client = Client::open(&server, R5, capabilities()).await;
        let ann = |mut params: Value| {
            params["_meta"] = json!({"user": "ann"});
            params
        };
        let created = client.call("tools/call", ann(json!({"name": name}))).await["result"].clone();
        let id = &created["taskId"];
        let own = client.call("tasks/get", ann(json!({"taskId": id}))).await;
        assert_eq!(own["result"]["taskId"], *id, "{own}");
        let another = client.call("tasks/get", json!({"taskId": id})).await;
        assert_eq!(another["error"]["code"], -32602, "{another}");
        let cancelled = client.call("tasks/cancel", ann(json!({"taskId": id}))).await;
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
        let ended = client.call("tasks/get", ann(json!({"taskId": id}))).await;
        assert_eq!(ended["result"]["status"], "cancelled", "{ended}");
    }
}

/// The result of a task is a member of the task, or has a request of its own: it is cut in both, once.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_is_cut_to_the_limit_of_results() {
    const LIMIT: usize = 1000;
    let long = || async { "line\n".repeat(LIMIT) };
    let shop = || Server::new("shop", "1").with(Tasks::new()).tool(tool("tail", long).task("required"));
    let behind = shop();
    let connector = move || {
        let transport = behind.in_process().map_err(std::io::Error::other);
        async { transport }
    };
    let relay = Relay::connect(pintle::Client::new("relay", "1"), connector).await.unwrap();
    let limit = || ResultLimit::new(LIMIT);
    let desks = [
        Server::new("desk", "1").mount("shop", Transform::new(shop()).max_result(limit())),
        Server::new("desk", "1").mount("shop", Transform::new(relay).max_result(limit())),
    ];
    let [mounted, relayed] = &desks;
    // A relay has no tasks for a client with a session: the server behind has those of the other era.
    for (desk, revision) in [(mounted, R5), (mounted, R4), (relayed, R5)] {
        let is_in_session = revision == R4;
        let capabilities = if is_in_session { json!({}) } else { capabilities() };
        let mut client = Client::open(desk, revision, capabilities).await;
        let result = match is_in_session {
            true => {
                let call = json!({"name": "shop_tail", "task": {}});
                let created = client.call("tools/call", call).await["result"]["task"].clone();
                client.call("tasks/result", json!({"taskId": created["taskId"]})).await["result"].clone()
            }
            false => {
                let created = client.call("tools/call", json!({"name": "shop_tail"})).await["result"].clone();
                poll(&mut client, created["taskId"].as_str().unwrap()).await["result"].clone()
            }
        };
        assert!(result.to_string().len() < 2 * LIMIT, "{revision}: {result}");
        let link = result["content"].as_array().unwrap().last().unwrap();
        assert_eq!(link["type"], "resource_link", "{revision}: {result}");
        let whole = client.call("resources/read", json!({"uri": link["uri"]})).await;
        assert_eq!(whole["result"]["contents"][0]["text"], "line\n".repeat(LIMIT), "{revision}");
    }
}
