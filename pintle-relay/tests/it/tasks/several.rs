//! Tasks of several servers behind one: their ids are those of the server in front, for their callers alone.

use std::time::Duration;

use pintle::{
    Server,
    server::{Caller, Cx, Mount, ToolError, tool},
};
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use crate::{
    support::{
        eras::{ALL, Client, R4, R5, WITH_FORMS},
        line_client::Raw,
        task_provider::TaskProvider,
    },
    world::{self, ERAS},
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Drink {
    name: String,
}

/// A server with a tool that runs as a task only, and asks.
fn behind(name: &'static str) -> Server {
    Server::new(name, "1.0.0")
        .with(Tasks::new().poll_interval(Duration::from_millis(200)))
        .tool(
            tool("order", move |cx: Cx| async move {
                let drink = cx.elicit::<Drink>("drink", "What?").await?.accepted().ok_or("declined")?;
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok::<_, ToolError>(format!("{} of {name}", drink.name))
            })
            .task("required"),
        )
        .tool(
            tool("sleep", move || async move {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                name
            })
            .task("required"),
        )
}

async fn relays(upstream: &str) -> Server {
    Server::new("front", "1.0.0")
        .provider(Mount::new("a", world::relay(&behind("a"), upstream).await))
        .provider(Mount::new("b", world::relay(&behind("b"), upstream).await))
}

fn declares() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn answer(method: &str, params: &Value) -> Value {
    assert_eq!((method, &params["message"]), ("elicitation/create", &json!("What?")));
    json!({"action": "accept", "content": {"name": "tea"}})
}

/// Calls a tool, and follows its task as a client of this revision does. Returns the text of the result.
async fn order(client: &mut Client, name: &str) -> String {
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let call = match client.revision {
        R4 => json!({"name": name, "task": {}}),
        _ => json!({"name": name}),
    };
    let called = client.call("tools/call", call).await;
    let result = &called["result"];
    if let Some(id) = result["task"]["taskId"].as_str().map(str::to_owned) {
        let got = client.call("tasks/get", json!({"taskId": id})).await;
        assert_eq!(got["result"]["taskId"], *id, "{got}");
        let related = id.clone();
        client.answer = Box::new(move |method, params| {
            assert_eq!(
                params["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *related,
                "{params}"
            );
            answer(method, params)
        });
        let done = client.call("tasks/result", json!({"taskId": id})).await;
        let related = &done["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
        assert_eq!(*related, *id, "{done}");
        return text(&done["result"]);
    }
    if result["resultType"] != "task" {
        return text(result);
    }
    let id = result["taskId"].as_str().unwrap().to_owned();
    for _ in 0..100 {
        let got = client.call("tasks/get", json!({"taskId": id})).await;
        assert_eq!(got["result"]["taskId"], *id, "{got}");
        match got["result"]["status"].as_str().unwrap() {
            "completed" => return text(&got["result"]["result"]),
            "input_required" => {
                let answers = json!({"drink": answer("elicitation/create", &got["result"]["inputRequests"]["drink"]["params"])});
                let updated =
                    client.call("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
                assert!(updated["result"].is_object(), "{updated}");
            }
            _ => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
    panic!("no end of {id}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_each_of_two_servers_comes_to_its_result_in_every_pairing_of_eras() {
    for upstream in ERAS {
        let front = relays(upstream).await;
        // Once more through another server.
        let outer = Server::new("outer", "1").mount("x", front.clone());
        for downstream in WITH_FORMS {
            for (server, prefix) in [(&front, ""), (&outer, "x_")] {
                let mut client = Client::open(server, downstream, declares()).await;
                for name in ["a", "b"] {
                    client.answer = Box::new(answer);
                    let text = order(&mut client, &format!("{prefix}{name}_order")).await;
                    assert_eq!(text, format!("tea of {name}"), "{downstream} to {upstream}");
                }
            }
        }
    }
}

/// Starts a task that sleeps, and returns its id.
async fn sleep(client: &mut Client, name: &str) -> String {
    let called = client.call("tools/call", json!({"name": name, "task": {}})).await;
    let result = &called["result"];
    let id = result["taskId"].as_str().or_else(|| result["task"]["taskId"].as_str());
    id.unwrap_or_else(|| panic!("{called}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn nobody_reaches_the_task_of_another_principal() {
    let callers =
        || [Caller::local(), Caller::new().principal("ann"), Caller::new().principal("bob"), Caller::new()];
    for era in ERAS {
        let front = relays(era).await;
        let open = async |caller: Caller| Client::over(Raw::known(&front, caller), era, declares()).await;
        for (owner, caller) in callers().into_iter().enumerate() {
            let mut client = open(caller).await;
            let id = sleep(&mut client, "a_sleep").await;
            for (other, caller) in callers().into_iter().enumerate() {
                let mut client = open(caller).await;
                for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result"] {
                    if method == "tasks/result" && (era == R5 || owner == other) {
                        continue;
                    }
                    let params = |id: &str| json!({"taskId": id, "inputResponses": {}});
                    let answer = client.call(method, params(&id)).await;
                    // Those of an anonymous session belong to it.
                    if owner == other && !(era == R4 && owner == 3) {
                        let is_of_era = era == R5 || method != "tasks/update";
                        assert_eq!(
                            answer["result"].is_object(),
                            is_of_era,
                            "{era} {owner} {method}: {answer}"
                        );
                        continue;
                    }
                    let absent = client.call(method, params("absent")).await["error"].to_string();
                    assert_eq!(
                        answer["error"].to_string().replace(&id, "absent"),
                        absent,
                        "{era}: {owner}, {other}"
                    );
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_lists_the_tasks_that_it_has_started() {
    let front = relays(R4).await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        // Behind the relays, both are one client.
        let mut client = Client::open(&front, R4, json!({})).await;
        let mut started = Vec::new();
        for name in ["a_sleep", "b_sleep", "a_sleep"] {
            started.push(sleep(&mut client, name).await);
        }
        started.sort();
        sessions.push((client, started));
    }
    for (client, started) in &mut sessions {
        let (mut listed, mut cursor) = (Vec::new(), Value::Null);
        for _ in 0..10 {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let page = client.call("tasks/list", params).await["result"].clone();
            let tasks = page["tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
            listed.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        listed.sort();
        assert_eq!(listed, *started);
        let bad = client.call("tasks/list", json!({"cursor": "bogus"})).await;
        assert_eq!(bad["error"]["code"], -32602, "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_declare_tasks_learns_what_is_missing() {
    let front = relays(R5).await;
    let mut client = Client::open(&front, R5, json!({})).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = client.call(method, json!({"taskId": "absent", "inputResponses": {}})).await;
        assert_eq!(answer["error"]["code"], -32021, "{answer}");
        let required = &answer["error"]["data"]["requiredCapabilities"]["extensions"];
        assert!(required["io.modelcontextprotocol/tasks"].is_object(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn principals_who_are_one_client_behind_a_relay_list_their_own_tasks() {
    let front = world::relay(&behind("a"), R4).await.into_server();
    let mut of_ann = Client::over(Raw::known(&front, Caller::new().principal("ann")), R4, json!({})).await;
    let mut of_bob = Client::over(Raw::known(&front, Caller::new().principal("bob")), R4, json!({})).await;
    let id = sleep(&mut of_ann, "sleep").await;
    let listed = |answer: Value| -> Vec<String> {
        let tasks = answer["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(of_ann.call("tasks/list", json!({})).await), [&*id]);
    assert_eq!(listed(of_bob.call("tasks/list", json!({})).await), [""; 0]);
    // The only user of a process sees what the server behind lists.
    let mut local = Client::open(&front, R4, json!({})).await;
    assert_eq!(listed(local.call("tasks/list", json!({})).await), [&*id]);
}

/// A provider whose every call is a task with an id of its choice, and which says what it is asked for.
fn hostile(name: &'static str) -> Mount<TaskProvider> {
    let answer = move |method: &str, params: &Value| match method {
        "tools/call" => {
            json!({"resultType": "task", "taskId": params["arguments"]["id"], "status": "working"})
        }
        _ => json!({"resultType": "complete", "taskId": "forged", "status": "working",
            "statusMessage": format!("{name}: {}", params["taskId"])}),
    };
    Mount::new(name, TaskProvider::new(name, answer))
}

#[tokio::test(start_paused = true)]
async fn a_list_that_no_server_has_declared_is_requested_of_none() {
    let front = Server::new("front", "1").provider(hostile("a"));
    let mut client = Client::open(&front, R4, json!({})).await;
    let answer = client.call("tasks/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_hostile_server_gets_nothing_but_its_own_tasks() {
    let front = Server::new("front", "1").provider(hostile("good")).provider(hostile("bad"));
    let mut client = Client::open(&front, R5, declares()).await;
    let call = |name: &str, id: Value| json!({"name": name, "arguments": {"id": id}});
    let good = client.call("tools/call", call("good_task", json!("t-1"))).await["result"]["taskId"].clone();
    // The id of another server, as that server has it and as the client has it.
    for id in [json!("t-1"), good.clone()] {
        let created = client.call("tools/call", call("bad_task", id.clone())).await;
        let outer = &created["result"]["taskId"];
        assert_ne!(*outer, good, "{created}");
        let got = client.call("tasks/get", json!({"taskId": outer})).await;
        assert_eq!(got["result"]["statusMessage"], format!("bad: {id}"));
        assert_eq!(got["result"]["taskId"], *outer, "the client knows no other id");
    }
    let got = client.call("tasks/get", json!({"taskId": good})).await;
    assert_eq!(got["result"]["statusMessage"], r#"good: "t-1""#);
    // Ids that are none.
    for id in [json!("x".repeat(1 << 20)), json!(""), json!(7), Value::Null] {
        let refused = client.call("tools/call", call("bad_task", id)).await;
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("no error"));
        assert!(message.contains("`bad` returned a task"), "{message}");
    }
    // Many, each found again: nothing is kept for them.
    let mut ids = Vec::new();
    for number in 0..10_000 {
        let created = client.call("tools/call", call("bad_task", json!(format!("n-{number}")))).await;
        ids.push(created["result"]["taskId"].as_str().unwrap().to_owned());
    }
    for number in [0, 5_000, 9_999] {
        let got = client.call("tasks/get", json!({"taskId": ids[number]})).await;
        assert_eq!(got["result"]["statusMessage"], format!(r#"bad: "n-{number}""#));
    }
    // What a client makes up reaches nobody.
    let (start, rest) = ids[0].split_at(10);
    let forged = format!("{start}{}{}", if rest.starts_with('A') { 'B' } else { 'A' }, &rest[1..]);
    for id in ["t-1".to_owned(), format!("{}A", ids[0]), forged, "x".repeat(100_000)] {
        let refused = client.call("tasks/get", json!({"taskId": id})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_declared_in_the_eras_that_have_them() {
    for upstream in ERAS {
        let front = relays(upstream).await;
        for downstream in ALL {
            let declared = crate::extensions::capabilities(&front, downstream).await;
            let extension = declared["extensions"].get("io.modelcontextprotocol/tasks").is_some();
            assert_eq!(extension, downstream == R5, "{downstream} to {upstream}: {declared}");
            let tasks = declared.get("tasks").is_some();
            assert_eq!(tasks, downstream == R4, "{downstream} to {upstream}: {declared}");
        }
    }
}
