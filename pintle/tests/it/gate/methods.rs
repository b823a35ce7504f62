//! Methods that the protocol does not define: gates decide about them, and not about those of tasks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Access, Cx, Decision, Entry, GateRequest, RequestError, Rules, method, tool},
};
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R4, WITH_FORMS},
    line_client::Raw,
};

fn server(ran: &Arc<AtomicUsize>) -> Server {
    ["example/open", "example/secret"].into_iter().fold(Server::new("s", "0"), |server, name| {
        let ran = ran.clone();
        server.method(method(name, move |_: Cx, params: Value| {
            ran.fetch_add(usize::from(name.contains("secret")), Ordering::SeqCst);
            async move { Ok::<_, RequestError>(params) }
        }))
    })
}

#[tokio::test]
async fn every_decision_counts_for_a_method() {
    for decision in [
        Decision::Allow,
        Decision::Confirm("Really?".to_owned()),
        Decision::Limit(Duration::from_secs(7)),
        Decision::Deny("it is Monday".to_owned()),
        Decision::Hide,
    ] {
        let ran = Arc::new(AtomicUsize::new(0));
        let decided = decision.clone();
        let server = server(&ran).gate(move |request: &GateRequest<'_>| match request.entry {
            Entry::Method("example/secret") => {
                assert_eq!((request.access, request.backend), (Access::Call, None));
                decided.clone()
            }
            _ => Decision::Allow,
        });
        for revision in ALL {
            ran.store(0, Ordering::SeqCst);
            let mut client = Client::open(&server, revision, json!({})).await;
            let open = client.call("example/open", json!({"a": 1})).await;
            assert_eq!(open["result"]["a"], 1, "{open}");
            let answer = client.call("example/secret", json!({"a": 1})).await;
            assert_eq!(ran.load(Ordering::SeqCst), usize::from(decision == Decision::Allow), "{answer}");
            let error = answer["error"].to_string();
            match &decision {
                Decision::Allow => assert_eq!(answer["result"]["a"], 1, "{answer}"),
                Decision::Confirm(_) => assert!(error.contains("cannot ask"), "{answer}"),
                Decision::Limit(_) => assert_eq!(answer["error"]["data"]["retryAfterMs"], 7000, "{answer}"),
                Decision::Deny(reason) => assert!(error.contains(reason), "{answer}"),
                Decision::Hide => {
                    let absent = client.call("example/absent", json!({"a": 1})).await["error"].to_string();
                    assert_eq!(error.replace("secret", "absent"), absent, "{revision}");
                }
            }
        }
    }
}

/// Only calls, prompts and reads can ask the user.
#[tokio::test]
async fn a_method_that_has_to_be_confirmed_is_denied() {
    let ran = Arc::new(AtomicUsize::new(0));
    let server = server(&ran).gate(|_: &GateRequest<'_>| Decision::Confirm("Really?".to_owned()));
    for revision in WITH_FORMS {
        let mut client = Client::open(&server, revision, json!({"elicitation": {}})).await;
        let answer = client.call("example/secret", json!({})).await;
        assert!(answer["error"]["message"].as_str().unwrap().contains("cannot ask"), "{answer}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn rules_name_methods_by_patterns_and_their_params_as_arguments() {
    let ran = Arc::new(AtomicUsize::new(0));
    let set = json!({"rules": [
        {"methods": ["example/*"], "arguments": {"force": true}, "decision": "deny", "reason": "gently"},
        {"methods": ["example/o*"], "decision": "allow"},
        {"tools": ["*"], "decision": "allow"}
    ]});
    let server = server(&ran).gate(Rules::new(serde_json::from_value(set).unwrap()).unwrap());
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        assert!(client.call("example/open", json!({})).await["result"].is_object());
        let forced = client.call("example/open", json!({"force": true})).await;
        assert!(forced["error"]["message"].as_str().unwrap().contains("gently"), "{forced}");
        // A rule for tools is not one for methods, and what no rule allows is hidden.
        assert_eq!(client.call("example/secret", json!({})).await["error"]["code"], -32601);
    }
    let mut raw = Raw::new(&server);
    raw.open(R4, json!({})).await;
    let twice = r#"{"jsonrpc":"2.0","id":9,"method":"example/open","params":{"a":{"force":1,"force":2}}}"#;
    raw.send_text(twice.to_owned()).await;
    let refused = raw.recv().await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("there twice"), "{refused}");
}

/// A method that several providers have is that of the first one that the caller may use.
#[tokio::test]
async fn a_provider_that_is_hidden_is_not_asked_for_a_method() {
    let of = |name: &'static str| {
        let answer = move |_: Cx, _: Value| async move { Ok::<_, RequestError>(json!({"by": name})) };
        Server::new(name, "0").method(method("example/who", answer))
    };
    let set = json!({"rules": [{"backends": ["two"], "decision": "allow"}]});
    let rules = Rules::new(serde_json::from_value(set).unwrap()).unwrap();
    let server = Server::new("s", "0").provider(of("one")).provider(of("two")).gate(rules);
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        let answer = client.call("example/who", json!({})).await;
        assert_eq!(answer["result"]["by"], "two", "{revision} {answer}");
    }
}

/// A task belongs to its caller; the call that becomes one is judged.
#[tokio::test]
async fn tasks_are_judged_by_their_calls() {
    let server = Server::new("s", "0")
        .with(Tasks::new())
        .tool(tool("work", || async { "worked" }).task("required"))
        .tool(tool("secret", || async { "worked" }).task("required"))
        .gate(|request: &GateRequest<'_>| match request.entry {
            Entry::Tool(tool) if tool.name == "work" => Decision::Allow,
            _ => Decision::Hide,
        });
    let mut client = Client::open(&server, R4, json!({})).await;
    let created = client.call("tools/call", json!({"name": "work", "task": {}})).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    let result = client.call("tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["result"]["content"][0]["text"], "worked", "{result}");
    assert!(client.call("tasks/get", json!({"taskId": id})).await["result"].is_object());
    let hidden = client.call("tools/call", json!({"name": "secret", "task": {}})).await;
    assert!(hidden["error"]["message"].as_str().unwrap().contains("no such tool"), "{hidden}");
    let mut other = Client::open(&server, R4, json!({})).await;
    let foreign = other.call("tasks/get", json!({"taskId": "absent"})).await;
    assert!(foreign["error"].is_object(), "{foreign}");
}
