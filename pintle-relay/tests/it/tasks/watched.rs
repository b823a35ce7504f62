//! Notifications of tasks of servers behind another one: their clients get them under the ids that they know, and nobody else does.

use std::time::Duration;

use pintle::{
    Server,
    content::Link,
    server::{Authenticated, Caller, Cx, Mount, Prefix, tool},
    types::schema::{CallToolResult, ContentBlock},
};
use pintle_tasks::Tasks;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    support::{
        eras::{Client, R4, R5},
        line_client::Raw,
        task_provider::TaskProvider,
        tasks::{Steps, declares, listen, start, status},
    },
    world,
};

/// A server with a tool that reports progress once, and then returns the name of the server with a link.
fn behind(name: &'static str, steps: &Steps) -> Server {
    let steps = steps.clone();
    Server::new(name, "1.0.0").with(Tasks::new()).tool(
        tool("build", move |cx: Cx| {
            let steps = steps.clone();
            async move {
                steps.wait().await;
                cx.progress_with(1.0, 2.0, "half").await;
                steps.wait().await;
                let link = ContentBlock::from(Link::new("note://1", "note"));
                CallToolResult::new(vec![ContentBlock::text(name), link])
            }
        })
        .task("required"),
    )
}

/// Has a task go on to its end, and looks at what its client hears. A client that polls gets the same result.
async fn to_its_end(client: &mut Client, id: &Value, steps: &Steps, name: &str) -> Value {
    steps.one();
    let half = status(client, id, "working").await;
    assert!(half["params"]["statusMessage"].as_str().unwrap().contains("half"), "{half}");
    steps.one();
    let end = status(client, id, "completed").await;
    assert_eq!(end["method"], "notifications/tasks");
    assert_eq!(end["params"]["result"]["content"][0]["text"], name, "{end}");
    let polled = client.call("tasks/get", json!({"taskId": id})).await;
    assert_eq!(polled["result"]["result"]["content"], end["params"]["result"]["content"], "{polled}");
    end
}

#[tokio::test(start_paused = true)]
async fn a_client_is_notified_of_the_tasks_of_a_mounted_server_by_their_ids_here() {
    let steps = Steps::new();
    let mall = Server::new("mall", "1").mount(Prefix::new("shop").uris(), behind("shop", &steps));
    let desk = Server::new("desk", "1").mount(Prefix::new("mall").uris(), mall);
    let mut client = Client::open(&desk, R5, declares()).await;
    let id = start(&mut client, "mall_shop_build").await;
    assert_eq!(listen(&mut client, &[&id, &json!("another")]).await, json!([id]));
    let end = to_its_end(&mut client, &id, &steps, "shop").await;
    assert_eq!(end["params"]["result"]["content"][1]["uri"], "note://mall/shop/1", "{end}");
}

#[tokio::test(start_paused = true)]
async fn a_client_is_notified_of_the_tasks_of_one_server_behind_a_relay() {
    let steps = Steps::new();
    let relay = world::relay(&behind("a", &steps), R5).await;
    let as_provider = Server::new("front", "1").provider(relay.clone());
    let mounted = Server::new("outer", "1").mount("x", as_provider.clone());
    let with_uris = Server::new("inner", "1").mount(Prefix::new("x").uris(), relay.clone());
    let with_uris = Server::new("outer", "1").mount(Prefix::new("y").uris(), with_uris);
    for (server, name, uri) in [
        (as_provider, "build", "note://1"),
        (mounted, "x_build", "note://1"),
        (with_uris, "y_x_build", "note://y/x/1"),
        (relay.into_server(), "build", "note://1"),
    ] {
        let mut client = Client::open(&server, R5, declares()).await;
        let id = start(&mut client, name).await;
        assert_eq!(listen(&mut client, &[&id]).await, json!([id]));
        let end = to_its_end(&mut client, &id, &steps, "a").await;
        assert_eq!(end["params"]["result"]["content"][1]["uri"], uri, "{end}");
    }
}

/// A server with its own task, and two behind it.
async fn gateway(own: &Steps, a: &Steps, b: &Steps) -> Server {
    behind("own", own)
        .provider(Mount::new("a", world::relay(&behind("a", a), R5).await))
        .provider(Mount::new("b", world::relay(&behind("b", b), R5).await))
}

#[tokio::test(start_paused = true)]
async fn one_subscription_has_tasks_of_the_server_and_of_two_behind_it() {
    let [own, a, b] = [(); 3].map(|()| Steps::new());
    let front = gateway(&own, &a, &b).await;
    let mut client = Client::open(&front, R5, declares()).await;
    let mut tasks = Vec::new();
    for (name, steps) in [("build", &own), ("a_build", &a), ("b_build", &b)] {
        tasks.push((start(&mut client, name).await, steps));
    }
    let ids: Vec<_> = tasks.iter().map(|(id, _)| id).collect();
    let mut granted: Vec<Value> = serde_json::from_value(listen(&mut client, &ids).await).unwrap();
    granted.sort_by_key(ToString::to_string);
    let mut expected: Vec<Value> = ids.into_iter().cloned().collect();
    expected.sort_by_key(ToString::to_string);
    assert_eq!(granted, expected);
    // In another order than they were started.
    for (number, name) in [(2, "b"), (0, "own"), (1, "a")] {
        to_its_end(&mut client, &tasks[number].0, tasks[number].1, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_principals_who_are_one_client_behind_are_notified_of_their_own_tasks_only() {
    let [own, a, b] = [(); 3].map(|()| Steps::new());
    let front = gateway(&own, &a, &b).await;
    let open = async |caller: Caller| Client::over(Raw::known(&front, caller), R5, declares()).await;
    let mut ann = open(Caller::new().principal("ann")).await;
    let mut bob = open(Caller::new().principal("bob")).await;
    let mut nobody = open(Caller::new()).await;
    let of_ann = start(&mut ann, "a_build").await;
    let of_bob = start(&mut bob, "b_build").await;
    let of_nobody = start(&mut nobody, "a_build").await;
    // One who knows the id of another is not granted it, and an anonymous caller is granted nothing.
    assert_eq!(listen(&mut ann, &[&of_ann, &of_bob]).await, json!([of_ann]));
    assert_eq!(listen(&mut bob, &[&of_ann, &of_bob]).await, json!([of_bob]));
    assert_eq!(listen(&mut nobody, &[&of_ann, &of_nobody]).await, json!([]));
    to_its_end(&mut bob, &of_bob, &b, "b").await;
    // Two tasks of `a` wait: both go on, and both end.
    a.add(4);
    let end = status(&mut ann, &of_ann, "completed").await;
    assert_eq!(end["params"]["result"]["content"][0]["text"], "a", "{end}");
    for client in [&mut bob, &mut nobody] {
        // The next that they get is the answer to this.
        let id = client.send("tools/list", json!({})).await;
        assert_eq!(client.recv().await["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_has_lost_the_rights_for_a_mount_is_not_notified() {
    let steps = Steps::new();
    let front =
        Server::new("front", "1").provider(Mount::new("a", behind("a", &steps)).requires(["build:run"]));
    let open = async |may_build: bool| {
        let ann = Authenticated::new("ann").rights(move |_| may_build);
        let caller = Caller::new().principal("ann").with(ann);
        Client::over(Raw::known(&front, caller), R5, declares()).await
    };
    let mut client = open(true).await;
    let id = start(&mut client, "a_build").await;
    assert_eq!(listen(&mut client, &[&id]).await, json!([id]));
    assert_eq!(listen(&mut open(false).await, &[&id]).await, json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_extension_learns_what_is_missing() {
    let [own, a, b] = [(); 3].map(|()| Steps::new());
    let both = gateway(&own, &a, &b).await;
    let one = Server::new("front", "1").mount("a", behind("a", &a));
    for server in [both, one] {
        let mut client = Client::open(&server, R5, json!({})).await;
        let filter = json!({"notifications": {"taskIds": ["t-1"]}});
        let refused = client.call("subscriptions/listen", filter).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        let mut client = Client::open(&server, R5, declares()).await;
        let many = vec!["t"; 1025];
        let filter = json!({"notifications": {"taskIds": many}});
        let refused = client.call("subscriptions/listen", filter).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("more than 1024 entries"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_notified_of_the_status_of_its_tasks_by_their_ids_here() {
    let [a, b] = [(); 2].map(|()| Steps::new());
    let front = Server::new("front", "1")
        .provider(Mount::new("a", world::relay(&behind("a", &a), R4).await))
        .provider(Mount::new("b", world::relay(&behind("b", &b), R4).await));
    let outer = Server::new("outer", "1").mount("x", front.clone());
    for (server, prefix) in [(front, ""), (outer, "x_")] {
        let mut client = Client::open(&server, R4, json!({})).await;
        let mut other = Client::open(&server, R4, json!({})).await;
        let of_a = start(&mut client, &format!("{prefix}a_build")).await;
        let of_b = start(&mut client, &format!("{prefix}b_build")).await;
        for (id, steps) in [(&of_b, &b), (&of_a, &a)] {
            steps.one();
            let half = status(&mut client, id, "working").await;
            assert_eq!(half["method"], "notifications/tasks/status");
            steps.one();
            status(&mut client, id, "completed").await;
        }
        let id = other.send("tools/list", json!({})).await;
        assert_eq!(other.recv().await["id"], id, "tasks of another session");
    }
}

/// A provider that grants every task, and tells its server of any.
fn hostile(name: &'static str) -> (watch::Sender<Option<String>>, Mount<TaskProvider>) {
    let (tells, notified) = watch::channel(None);
    let answer = |_: &str, _: &Value| json!({"resultType": "task", "taskId": "t-1", "status": "working"});
    (tells, Mount::new(name, TaskProvider::new(name, answer).telling(notified)))
}

#[tokio::test(start_paused = true)]
async fn a_server_behind_cannot_report_the_tasks_of_another() {
    let (good_tells, good) = hostile("good");
    let (bad_tells, bad) = hostile("bad");
    let front = Server::new("front", "1").provider(good).provider(bad);
    let mut client = Client::open(&front, R5, declares()).await;
    let id = start(&mut client, "good_task").await;
    assert_eq!(listen(&mut client, &[&id]).await, json!([id]));
    // The id that the other server has, and the one that the client has.
    for id in ["t-1", id.as_str().unwrap()] {
        bad_tells.send_replace(Some(id.to_owned()));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    good_tells.send_replace(Some("t-1".to_owned()));
    let received = client.receive().await;
    assert_eq!((&received["params"]["taskId"], &received["params"]["statusMessage"]), (&id, &json!("told")));
    let listed = client.send("tools/list", json!({})).await;
    assert_eq!(client.recv().await["id"], listed, "it was told of once");
}
