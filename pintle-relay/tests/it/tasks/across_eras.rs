//! Tasks of a server of one era, for clients of the other: a relay has them itself.

use std::time::Duration;

use pintle::{
    Server,
    content::Link,
    server::{Caller, Cx, Prefix, ToolError, tool},
    types::{
        ErrorCode, RpcError,
        schema::{CallToolResult, ContentBlock},
    },
};
use pintle_tasks::{MemoryTaskStore, TaskQuota, Tasks};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    support::{
        drop_counter::DropCounter,
        eras::{Client, R3, R4, R5},
        line_client::Raw,
        tasks::{listen, outcome, polled, start, status},
    },
    world,
};

/// The eras of a client and of the server behind.
const PAIRS: [(&str, &str); 2] = [(R5, R4), (R4, R5)];

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Drink {
    name: String,
}

/// A server whose tools run as tasks. Those that sleep for long are counted when they are dropped.
pub(super) fn kitchen(dropped: &DropCounter) -> Server {
    let dropped = dropped.clone();
    let order = |cx: Cx| async move {
        let drink = cx.elicit::<Drink>("drink", "What?").await?.accepted().ok_or("declined")?;
        cx.progress_with(1.0, 2.0, "brewing").await;
        sleep(Duration::from_secs(2)).await;
        let link = ContentBlock::from(Link::new("note://1", "note"));
        Ok::<_, ToolError>(CallToolResult::new(vec![ContentBlock::text(drink.name), link]))
    };
    let wait = move || {
        let guard = dropped.guard();
        async move {
            sleep(Duration::from_secs(7200)).await;
            drop(guard);
            "slept"
        }
    };
    let fail = || async {
        sleep(Duration::from_secs(1)).await;
        Err::<String, _>(RpcError::new(ErrorCode(-31999), "out of paper").with_data(&json!({"tray": 2})))
    };
    let stir = |cx: Cx| async move {
        cx.progress_with(1.0, 2.0, "stirring").await;
        sleep(Duration::from_secs(2)).await;
        "stirred"
    };
    let sorry = || async { Err::<String, _>(ToolError::new("not today")) };
    Server::new("kitchen", "1.0.0")
        .with(Tasks::new().poll_interval(Duration::from_millis(200)))
        .tool(tool("order", order).task("optional"))
        .tool(tool("sleep", wait).task("optional"))
        .tool(tool("fail", fail).task("required"))
        .tool(tool("sorry", sorry).task("optional"))
        .tool(tool("now", || async { "at once" }).task("optional"))
        .tool(tool("stir", stir))
}

pub(super) fn declares() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {EXTENSION: {}}})
}

fn tea(method: &str, params: &Value) -> Value {
    assert_eq!((method, &params["message"]), ("elicitation/create", &json!("What?")));
    json!({"action": "accept", "content": {"name": "tea"}})
}

/// Everything that a client of a task that asks gets to see.
pub(super) struct Followed {
    pub(super) result: Value,
    statuses: Vec<String>,
}

/// Calls a tool, answers the question of its task, and follows the task to its end.
pub(super) async fn follow(client: &mut Client, name: &str) -> Followed {
    let id = start(client, name).await;
    let asking = polled(client, &id, "input_required").await;
    if client.revision == R4 {
        let related = id.clone();
        client.answer = Box::new(move |method, params| {
            assert_eq!(params["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], related);
            tea(method, params)
        });
        let done = client.call("tasks/result", json!({"taskId": id})).await["result"].clone();
        assert_eq!(done["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{done}");
        let received = client.received().into_iter().filter(|received| received["params"]["taskId"] == id);
        let statuses =
            received.filter_map(|received| received["params"]["statusMessage"].as_str().map(str::to_owned));
        return Followed { result: done, statuses: statuses.collect() };
    }
    let question = &asking["inputRequests"]["drink"];
    let answer = tea(question["method"].as_str().unwrap_or_default(), &question["params"]);
    let update = json!({"taskId": id, "inputResponses": {"drink": answer}});
    let updated = client.call("tasks/update", update).await;
    assert!(updated["result"].is_object(), "{updated}");
    let mut statuses = Vec::new();
    loop {
        let got = client.call("tasks/get", json!({"taskId": id})).await["result"].clone();
        statuses.extend(got["statusMessage"].as_str().map(str::to_owned));
        if got["status"] == "completed" {
            return Followed { result: got["result"].clone(), statuses };
        }
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_follows_a_task_of_the_other_era_from_its_call_to_its_result() {
    for (client, behind) in PAIRS {
        let dropped = DropCounter::default();
        let relay = async || world::relay(&kitchen(&dropped), behind).await;
        let mounted = Server::new("inner", "1").mount("x", relay().await);
        for (server, prefix) in [
            (relay().await.into_server(), ""),
            (Server::new("front", "1").provider(relay().await), ""),
            (Server::new("front", "1").mount("x", relay().await), "x_"),
            (Server::new("outer", "1").mount("y", mounted), "y_x_"),
            (Server::new("outer", "1").mount("y", relay().await.into_server()), "y_"),
            // Its own tasks are used.
            (Server::new("front", "1").with(Tasks::new()).provider(relay().await), ""),
        ] {
            let mut client = Client::open(&server, client, declares()).await;
            let followed = follow(&mut client, &format!("{prefix}order")).await;
            assert_eq!(followed.result["content"][0]["text"], "tea", "{}", followed.result);
            let is_progress = |message: &String| message == "brewing (1 of 2)";
            assert!(followed.statuses.iter().any(is_progress), "{prefix} {:?}", followed.statuses);
            assert_eq!(client.questions, usize::from(client.revision == R4), "the rest is in the task");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_at_the_server_behind() {
    for (client, behind) in PAIRS {
        let dropped = DropCounter::default();
        let front = Server::new("front", "1").mount("x", world::relay(&kitchen(&dropped), behind).await);
        let mut client = Client::open(&front, client, declares()).await;
        let id = start(&mut client, "x_sleep").await;
        polled(&mut client, &id, "working").await;
        assert_eq!(dropped.count(), 0);
        let cancelled = client.call("tasks/cancel", json!({"taskId": id})).await;
        assert!(cancelled["result"].is_object(), "{cancelled}");
        polled(&mut client, &id, "cancelled").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(dropped.count(), 1, "the handler behind {behind} is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_task_is_that_of_its_call() {
    for (client, behind) in PAIRS {
        let front = world::relay(&kitchen(&DropCounter::default()), behind).await.into_server();
        let mut client = Client::open(&front, client, declares()).await;
        let id = start(&mut client, "fail").await;
        let failed = outcome(&mut client, &id).await;
        assert_eq!((&failed["error"]["code"], &failed["error"]["data"]["tray"]), (&json!(-31999), &json!(2)));
        polled(&mut client, &id, "failed").await;
        let id = start(&mut client, "sorry").await;
        let failed = outcome(&mut client, &id).await;
        assert_eq!(failed["result"]["isError"], true, "{failed}");
        assert_eq!(failed["result"]["content"][0]["text"], "not today", "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_there_at_once_is_that_of_a_task() {
    for (client, behind) in PAIRS {
        let front = world::relay(&kitchen(&DropCounter::default()), behind).await.into_server();
        let mut client = Client::open(&front, client, declares()).await;
        let id = start(&mut client, "now").await;
        let done = outcome(&mut client, &id).await;
        assert_eq!(done["result"]["content"][0]["text"], "at once", "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_tasks_is_one_for_a_client_that_requests_it() {
    let front = async |era| world::relay(&kitchen(&DropCounter::default()), era).await.into_server();
    let mut client = Client::open(&front(R5).await, R4, declares()).await;
    let id = start(&mut client, "stir").await;
    let stirring = status(&mut client, &id, "working").await;
    assert_eq!(stirring["params"]["statusMessage"], "stirring (1 of 2)", "{stirring}");
    let done = outcome(&mut client, &id).await;
    assert_eq!(done["result"]["content"][0]["text"], "stirred", "{done}");
    // The other one leaves it to the server.
    let mut client = Client::open(&front(R4).await, R5, declares()).await;
    assert_eq!(client.tool("stir").await, "stirred");
}

#[tokio::test(start_paused = true)]
async fn nobody_else_sees_a_task_of_the_relay() {
    let callers = || [Caller::new().principal("ann"), Caller::new().principal("bob"), Caller::local()];
    for (era, behind) in PAIRS {
        let dropped = DropCounter::default();
        let relay = async || world::relay(&kitchen(&dropped), behind).await;
        for front in [relay().await.into_server(), Server::new("front", "1").provider(relay().await)] {
            let open = async |caller: Caller| Client::over(Raw::known(&front, caller), era, declares()).await;
            let mut ann = open(callers()[0].clone()).await;
            let id = start(&mut ann, "sleep").await;
            for caller in callers().into_iter().skip(1) {
                let mut other = open(caller).await;
                for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result"] {
                    let params = |id: &Value| json!({"taskId": id, "inputResponses": {}});
                    let refused = other.call(method, params(&id)).await["error"].to_string();
                    let absent = other.call(method, params(&json!("absent"))).await["error"].to_string();
                    assert_eq!(refused.replace(id.as_str().unwrap(), "absent"), absent, "{era} {method}");
                }
                if era == R5 {
                    assert_eq!(listen(&mut other, &[&id]).await, json!([]));
                }
            }
            polled(&mut ann, &id, "working").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_kept_as_long_as_a_session_asks_for() {
    let dropped = DropCounter::default();
    let front = world::relay(&kitchen(&dropped), R5).await.into_server();
    let mut client = Client::open(&front, R4, declares()).await;
    let call = json!({"name": "sleep", "task": {"ttl": 5000}});
    let created = client.call("tools/call", call).await["result"]["task"].clone();
    assert_eq!(created["ttl"], 5000, "{created}");
    sleep(Duration::from_secs(4)).await;
    polled(&mut client, &created["taskId"], "working").await;
    sleep(Duration::from_secs(4)).await;
    let gone = client.call("tasks/get", json!({"taskId": created["taskId"]})).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    assert_eq!(dropped.count(), 1, "the task behind has ended too");
    // That of a task of the other era is the lifetime of the task behind, within the limits of the relay.
    let relay =
        world::relay(&kitchen(&dropped), R4).await.tasks(Tasks::new().max_ttl(Duration::from_secs(60)));
    let mut client = Client::open(&relay.into_server(), R5, declares()).await;
    let created = client.call("tools/call", json!({"name": "sleep"})).await["result"].clone();
    assert_eq!(created["ttlMs"], 60_000, "{created}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_relay_has_no_room_for_ends_at_the_server_behind_too() {
    for (era, behind) in PAIRS {
        let (dropped, mut quota) = (DropCounter::default(), TaskQuota::default());
        quota.account_tasks = 1;
        let relay = world::relay(&kitchen(&dropped), behind).await.tasks(Tasks::new().quota(quota));
        let front = relay.into_server();
        let mut ann = Client::over(Raw::known(&front, Caller::new().principal("ann")), era, declares()).await;
        let first = start(&mut ann, "sleep").await;
        let refused = ann.call("tools/call", json!({"name": "sleep", "task": {}})).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("too many tasks"), "{refused}");
        sleep(Duration::from_secs(1)).await;
        // That of a session is refused before anything is sent.
        assert_eq!(dropped.count(), usize::from(era == R5));
        polled(&mut ann, &first, "working").await;
        let mut bob = Client::over(Raw::known(&front, Caller::new().principal("bob")), era, declares()).await;
        start(&mut bob, "sleep").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_tasks_gets_the_result() {
    for (era, behind, declared) in [
        (R5, R4, json!({"elicitation": {"form": {}}})),
        (R4, R5, declares()),
        (R3, R5, json!({"elicitation": {}})),
        (R3, R4, json!({"elicitation": {}})),
    ] {
        let front = world::relay(&kitchen(&DropCounter::default()), behind).await.into_server();
        let mut client = Client::open(&front, era, declared).await;
        client.answer = Box::new(tea);
        assert_eq!(client.tool("order").await, "tea", "{era} to {behind}");
        assert_eq!(client.tool("now").await, "at once", "{era} to {behind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_lists_its_tasks_of_the_other_era() {
    let dropped = DropCounter::default();
    let relay = async || world::relay(&kitchen(&dropped), R5).await;
    let two = Server::new("front", "1").mount("x", relay().await).mount("y", relay().await);
    for (front, names) in [(relay().await.into_server(), ["sleep", "sleep"]), (two, ["x_sleep", "y_sleep"])] {
        let ann = || Raw::known(&front, Caller::new().principal("ann"));
        let mut client = Client::over(ann(), R4, declares()).await;
        let tools = client.call("tools/list", json!({})).await["result"]["tools"].clone();
        for tool in tools.as_array().unwrap() {
            assert_eq!(tool["execution"]["taskSupport"], "optional", "{tool}");
        }
        let mut started = Vec::new();
        for name in names {
            started.push(start(&mut client, name).await.as_str().unwrap().to_owned());
        }
        let listed = async |client: &mut Client| {
            let answer = client.call("tasks/list", json!({})).await;
            let tasks = answer["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
            let mut ids: Vec<_> =
                tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect();
            ids.sort();
            ids
        };
        started.sort();
        assert_eq!(listed(&mut client).await, started);
        let mut other =
            Client::over(Raw::known(&front, Caller::new().principal("bob")), R4, declares()).await;
        assert_eq!(listed(&mut other).await, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_each_server_that_has_a_relay_are_its_own() {
    let relay = world::relay(&kitchen(&DropCounter::default()), R5).await;
    let servers = [1, 2].map(|_| Server::new("front", "1").provider(relay.clone()));
    for server in &servers {
        let mut client = Client::open(server, R4, declares()).await;
        let id = start(&mut client, "now").await;
        outcome(&mut client, &id).await;
        let listed = client.call("tasks/list", json!({})).await["result"]["tasks"].clone();
        assert_eq!((listed.as_array().map(Vec::len), &listed[0]["taskId"]), (Some(1), &id), "{listed}");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_of_a_task_of_the_other_era() {
    for (era, behind) in PAIRS {
        let relay = async || world::relay(&kitchen(&DropCounter::default()), behind).await;
        let uris = Server::new("inner", "1").mount(Prefix::new("x").uris(), relay().await);
        let uris = Server::new("outer", "1").mount(Prefix::new("y").uris(), uris);
        for (front, name, uri) in
            [(relay().await.into_server(), "order", "note://1"), (uris, "y_x_order", "note://y/x/1")]
        {
            let mut client = Client::open(&front, era, declares()).await;
            let id = start(&mut client, name).await;
            if era == R5 {
                assert_eq!(listen(&mut client, &[&id, &json!("another")]).await, json!([id]));
                let asking = polled(&mut client, &id, "input_required").await;
                let answer = tea("elicitation/create", &asking["inputRequests"]["drink"]["params"]);
                let update = json!({"taskId": id, "inputResponses": {"drink": answer}});
                client.call("tasks/update", update).await;
                let end = status(&mut client, &id, "completed").await;
                assert_eq!(end["method"], "notifications/tasks");
                assert_eq!(end["params"]["result"]["content"][1]["uri"], uri, "{end}");
            } else {
                client.answer = Box::new(tea);
                let done = client.call("tasks/result", json!({"taskId": id})).await;
                assert_eq!(done["result"]["content"][1]["uri"], uri, "{done}");
                let end = status(&mut client, &id, "completed").await;
                assert_eq!(end["method"], "notifications/tasks/status");
            }
            let got = polled(&mut client, &id, "completed").await;
            if era == R5 {
                assert_eq!(got["result"]["content"][1]["uri"], uri, "{got}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_of_a_relay_has_its_tasks_and_no_others() {
    for (era, behind) in [(R5, R4), (R4, R5), (R5, R5), (R4, R4)] {
        let store = std::sync::Arc::new(MemoryTaskStore::new());
        let relay = world::relay(&kitchen(&DropCounter::default()), behind).await;
        let front = relay.tasks(Tasks::new().store(store.clone())).into_server();
        let mut client = Client::open(&front, era, declares()).await;
        let id = start(&mut client, "sleep").await;
        polled(&mut client, &id, "working").await;
        assert_eq!(store.len(), usize::from(era != behind), "{era} to {behind}");
    }
}
