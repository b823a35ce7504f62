//! Search in place of a list of tools: what is hidden is not found, and gates judge what is called behind `call_tool`.

use pintle::{
    Server,
    server::{ArgumentType, Decision, GateRequest, Rules, ToolSearch, tool},
};
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, WITH_FORMS};

fn many() -> Server {
    let names = ["push", "pull", "secret_push", "danger"];
    names.into_iter().fold(Server::new("many", "0"), |server, name| {
        server
            .tool(tool(name, move || async move { name }).description(format!("Does {name} with branches.")))
    })
}

fn gate(request: &GateRequest<'_>) -> Decision {
    let forced = request.argument("force", &[ArgumentType::Boolean]);
    let forced = forced.is_some_and(|forced| forced.any(|value| value.is_some()));
    match request.name() {
        "secret_push" => Decision::Hide,
        "danger" => Decision::Confirm("Really?".to_owned()),
        "push" if forced => Decision::Deny("do not force".to_owned()),
        _ => Decision::Allow,
    }
}

/// The gate outside of the search, and inside of it.
fn places() -> [Server; 2] {
    let outer = || Server::new("outer", "0");
    [
        outer().provider(ToolSearch::new(many())).gate(gate),
        outer().provider(ToolSearch::new(many().gate(gate))),
    ]
}

async fn call(client: &mut Client, name: &str, arguments: Value) -> Value {
    client.call("tools/call", json!({"name": name, "arguments": arguments})).await
}

async fn found(client: &mut Client, query: &str) -> Vec<String> {
    let result = call(client, "search_tools", json!({"query": query})).await;
    let text = result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    let found: Value = serde_json::from_str(text).unwrap();
    let tools = found["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn hidden_tools_are_neither_listed_nor_found_nor_called() {
    for server in places() {
        for revision in [R4, R5] {
            let mut client = Client::open(&server, revision, json!({})).await;
            let list = client.call("tools/list", json!({})).await["result"]["tools"].clone();
            let names: Vec<_> = list.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
            assert_eq!(names, ["search_tools", "call_tool"]);
            assert_eq!(found(&mut client, "push").await, ["push"]);
            assert_eq!(found(&mut client, "branches").await, ["push", "pull", "danger"]);
            assert_eq!(found(&mut client, "").await, ["push", "pull", "danger"]);
            assert_eq!(found(&mut client, "danger with branches").await[0], "danger", "the best match first");
            let hidden =
                call(&mut client, "call_tool", json!({"name": "secret_push"})).await["error"].to_string();
            let absent = call(&mut client, "call_tool", json!({"name": "absent"})).await["error"].to_string();
            assert_eq!(hidden.replace("secret_push", "absent"), absent);
            let direct = call(&mut client, "push", json!({})).await;
            assert!(direct["error"]["message"].as_str().unwrap().contains("no such tool"), "{direct}");
        }
    }
}

#[tokio::test]
async fn the_tool_behind_a_call_is_judged_with_its_arguments() {
    for (place, server) in places().iter().enumerate() {
        for revision in WITH_FORMS {
            let mut client = Client::open(server, revision, json!({"elicitation": {}})).await;
            let done = call(&mut client, "call_tool", json!({"name": "push", "arguments": {}})).await;
            assert_eq!(done["result"]["content"][0]["text"], "push", "{place} {done}");
            let forced =
                call(&mut client, "call_tool", json!({"name": "push", "arguments": {"force": true}})).await;
            assert!(
                forced["error"]["message"].as_str().unwrap().contains("do not force"),
                "{place} {forced}"
            );
            client.answer = Box::new(|_, params| {
                assert_eq!(params["message"], "Really?");
                json!({"action": "accept", "content": {}})
            });
            let confirmed = call(&mut client, "call_tool", json!({"name": "danger"})).await;
            assert_eq!(confirmed["result"]["content"][0]["text"], "danger", "{place} {revision} {confirmed}");
            assert_eq!(client.questions, 1, "{place} {revision}");
            let usage = call(&mut client, "call_tool", json!({"tool": "push"})).await;
            assert!(usage["error"]["message"].as_str().unwrap().contains("needs `name`"), "{usage}");
        }
    }
}

#[tokio::test]
async fn a_call_behind_a_call_counts_once() {
    let set = json!({"rules": [{"rate": {"calls": 3, "seconds": 600}}, {"decision": "allow"}]});
    let rules = Rules::new(serde_json::from_value(set).unwrap()).unwrap();
    let server = Server::new("outer", "0").provider(ToolSearch::new(many())).gate(rules);
    let mut client = Client::open(&server, R5, json!({})).await;
    assert_eq!(found(&mut client, "push").await[0], "push");
    for _ in 0..2 {
        let done = call(&mut client, "call_tool", json!({"name": "push"})).await;
        assert_eq!(done["result"]["content"][0]["text"], "push", "{done}");
    }
    let limited = call(&mut client, "call_tool", json!({"name": "push"})).await;
    assert!(limited["error"]["data"]["retryAfterMs"].is_number(), "{limited}");
}
