//! What a gate counts, and what it reads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{
        Access, Args, ArgumentType, Arguments, Authenticated, Caller, Cx, Decision, Elicited, Gate,
        GateRequest, Principal, ToolError, resource, tool,
    },
};
use serde_json::json;

use crate::support::{
    eras::{ALL, Client, R5, WITH_FORMS},
    line_client::Raw,
};

/// A gate that allows two calls.
struct TwoCalls(Arc<AtomicUsize>);

impl Gate for TwoCalls {
    fn decide(&self, _: &GateRequest<'_>) -> Decision {
        Decision::Allow
    }

    fn count(&self, request: &GateRequest<'_>) -> Option<Duration> {
        assert!(matches!(request.access, Access::Call | Access::Read));
        (self.0.fetch_add(1, Ordering::SeqCst) >= 2).then_some(Duration::from_secs(60))
    }
}

#[tokio::test]
async fn calls_count_once_and_lists_and_rounds_do_not() {
    async fn asks(cx: Cx) -> Result<String, ToolError> {
        for key in ["one", "two"] {
            if !matches!(cx.elicit::<()>(key, key).await?, Elicited::Accept(())) {
                return Ok("left".to_owned());
            }
        }
        Ok("done".to_owned())
    }
    for revision in WITH_FORMS {
        let count = Arc::new(AtomicUsize::new(0));
        let server = Server::new("s", "0")
            .tool(tool("asks", asks))
            .tool(tool("denied", || async { "no" }))
            .resource(resource("a://b", "b", || async { "b" }))
            .gate(TwoCalls(count.clone()))
            .gate(|request: &GateRequest<'_>| match request.name() {
                "denied" => Decision::Deny("no".to_owned()),
                _ => Decision::Allow,
            });
        let mut client = Client::open(&server, revision, json!({"elicitation": {}})).await;
        client.answer = Box::new(|_, _| json!({"action": "accept", "content": {}}));
        for _ in 0..5 {
            client.call("tools/list", json!({})).await;
            client.call("resources/list", json!({})).await;
            client.call("tools/call", json!({"name": "denied"})).await;
        }
        assert_eq!(client.tool("asks").await, "done");
        assert_eq!(count.load(Ordering::SeqCst), 1, "{revision}");
        client.call("resources/read", json!({"uri": "a://b"})).await;
        let limited = client.call("tools/call", json!({"name": "asks"})).await;
        assert_eq!(limited["error"]["data"]["retryAfterMs"], 60000, "{revision} {limited}");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pushed {
    branch: String,
    #[serde(default = "yes")]
    force: bool,
}

fn yes() -> bool {
    true
}

fn no_force(request: &GateRequest<'_>) -> Decision {
    let forced = request.argument("force", &[ArgumentType::Boolean]);
    let forced = forced.is_some_and(|forced| forced.any(|value| value == Some(&json!(true))));
    if forced { Decision::Deny("do not force".to_owned()) } else { Decision::Allow }
}

#[tokio::test]
async fn arguments_are_judged_with_their_defaults_and_without_repeated_members() {
    let push = |Args(Pushed { branch, force }): Args<Pushed>| async move {
        assert!(!force, "the gate refuses it");
        branch
    };
    let own = Server::new("s", "0").tool(tool("push", push)).gate(no_force);
    let mounted = Server::new("o", "0")
        .mount(pintle::server::Prefix::none(), Server::new("s", "0").tool(tool("push", push)))
        .gate(no_force);
    for server in [&own, &mounted] {
        let mut raw = Raw::new(server);
        raw.open("2025-11-25", json!({})).await;
        let mut id = 1;
        for (arguments, expected) in [
            (r#"{"branch":"a","force":false}"#, None),
            (r#"{"branch":"a","force":true}"#, Some("do not force")),
            (r#"{"branch":"a"}"#, Some("do not force")),
            (r#"{"branch":"a","force":true,"force":false}"#, Some("there twice")),
            (r#"{"branch":"a","force":false,"\u0066orce":false}"#, Some("there twice")),
            (r#"{"branch":"a","force":false,"more":{"b":[{"c":1,"c":1}]}}"#, Some("there twice")),
        ] {
            id += 1;
            raw.send_text(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"push","arguments":{arguments}}}}}"#
            ))
            .await;
            let answer = raw.recv().await;
            match expected {
                None => assert_eq!(answer["result"]["content"][0]["text"], "a", "{arguments} {answer}"),
                Some(reason) => {
                    let message = answer["error"]["message"].as_str().unwrap_or_default();
                    assert!(message.contains(reason), "{arguments} {answer}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_default_inside_of_an_argument_is_judged_too() {
    let schema = json!({"type": "object", "properties": {"options": {
        "type": "object", "properties": {"force": {"type": "boolean", "default": true}}}}});
    let push = tool("push", |_: Arguments| async { "pushed" }).input_schema(schema);
    let server = Server::new("s", "0").tool(push).gate(|request: &GateRequest<'_>| {
        let forced = request.argument("options.force", &[ArgumentType::Boolean]);
        let forced = forced.is_some_and(|forced| forced.any(|value| value == Some(&json!(true))));
        if forced { Decision::Deny("do not force".to_owned()) } else { Decision::Allow }
    });
    let mut client = Client::open(&server, "2025-11-25", json!({})).await;
    for (options, is_denied) in [(json!({"force": false}), false), (json!({}), true), (json!({"a": 1}), true)]
    {
        let called =
            client.call("tools/call", json!({"name": "push", "arguments": {"options": options}})).await;
        assert_eq!(called["error"].to_string().contains("do not force"), is_denied, "{options} {called}");
    }
}

#[tokio::test]
async fn callers_are_distinguished_and_nothing_known_has_no_rights() {
    let server = Server::new("s", "0").tool(tool("who", || async { "ran" })).gate(
        |request: &GateRequest<'_>| match (request.identity(), request.has("run")) {
            (Principal::Anonymous, true) => unreachable!("an anonymous caller has no rights"),
            (Principal::Local | Principal::Named(_), true) => Decision::Allow,
            (identity, false) => Decision::Deny(format!("{identity:?} lacks it")),
        },
    );
    for revision in ALL {
        for (caller, refused) in [
            (Caller::local(), None),
            (Caller::new(), Some("Anonymous lacks it")),
            (Caller::new().principal("ann"), Some("lacks it")),
            (Caller::new().with(Authenticated::new("ann").rights(|right| right == "run")), None),
            (Caller::new().with(Authenticated::new("bob").rights(|_| false)), Some("\"bob\"")),
        ] {
            let mut client = Client::over(Raw::known(&server, caller), revision, json!({})).await;
            let answer = client.call("tools/call", json!({"name": "who"})).await;
            match refused {
                None => assert!(answer["result"].is_object(), "{revision} {answer}"),
                Some(reason) => assert!(answer.to_string().replace('\\', "").contains(reason), "{answer}"),
            }
        }
    }
}

#[tokio::test]
async fn a_gate_that_panics_allows_nothing() {
    let server = Server::new("s", "0")
        .tool(tool("open", || async { "ran" }))
        .gate(|_: &GateRequest<'_>| -> Decision { panic!("a gate fails") });
    let mut client = Client::open(&server, R5, json!({})).await;
    for (method, params) in [("tools/call", json!({"name": "open"})), ("tools/list", json!({}))] {
        let answer = client.call(method, params).await;
        assert!(answer["error"].is_object() && !answer.to_string().contains("ran"), "{answer}");
    }
}
