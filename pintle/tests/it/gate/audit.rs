//! The audit log, and the counts of rates: a line for every decision, and a call for every call.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Server,
    server::{
        Authenticated, Caller, Cx, Decision, GateRequest, Mount, Partial, RequestError, RuleSet, Rules,
        method, prompt, resource, tool,
    },
};
use serde_json::{Value, json};

#[cfg(feature = "http-server")]
use crate::support::http_client::Wire;
use crate::support::{
    eras::{Client, R4, R5},
    line_client::Raw,
};

fn set(rules: Value) -> RuleSet {
    serde_json::from_value(json!({ "rules": rules })).unwrap()
}

/// Rules, and what they have reported: the principal, the access, the name, the decision and the rule.
fn audited(rules: Value) -> (Rules, impl Fn() -> Vec<[String; 5]>) {
    let records: Arc<Mutex<Vec<[String; 5]>>> = Arc::default();
    let written = records.clone();
    let rules = Rules::audited(set(rules), move |record| {
        let texts = [record.principal, record.access, record.name, record.decision];
        let [principal, access, name, decision] = texts.map(str::to_owned);
        let rule = record.rule.clone().unwrap_or_default();
        written.lock().unwrap().push([principal, access, name, decision, rule]);
    });
    (rules.unwrap(), move || std::mem::take(&mut *records.lock().unwrap()))
}

async fn open(server: &Server, caller: Caller, revision: &'static str, capabilities: Value) -> Client {
    Client::over(Raw::known(server, caller), revision, capabilities).await
}

#[tokio::test(start_paused = true)]
async fn every_decision_about_calls_and_completions_is_a_line() {
    let (rules, records) = audited(json!([
        {"name": "rate", "tools": ["often"], "rate": {"calls": 1, "seconds": 60}},
        {"name": "ask", "tools": ["ask"], "decision": "confirm"},
        {"name": "no", "prompts": ["no"], "decision": "deny"},
        {"name": "yes", "tools": ["often"], "prompts": ["yes"], "decision": "allow"},
    ]));
    let completed = |name: &'static str| {
        prompt(name, || async { "" }).argument("x", "").complete("x", |_: Partial| async { vec!["value"] })
    };
    let server = ["often", "ask", "other"]
        .into_iter()
        .fold(Server::new("s", "0"), |server, name| server.tool(tool(name, || async { "done" })))
        .prompt(completed("yes"))
        .prompt(completed("no"))
        .gate(rules);
    for revision in [R4, R5] {
        tokio::time::advance(Duration::from_secs(60)).await;
        // Nobody has authenticated the caller.
        let mut client = open(&server, Caller::new(), revision, json!({})).await;
        let mut expect = async |method: &str, params: Value, expected: &[[&str; 4]]| {
            client.call(method, params).await;
            let expected: Vec<_> = expected
                .iter()
                .map(|[access, name, decision, rule]| {
                    ["@anonymous", access, name, decision, rule].map(|text: &str| text.to_owned())
                })
                .collect();
            assert_eq!(records(), expected, "{revision} {method}");
        };
        let complete = |name: &str| json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "x", "value": ""}});
        expect("tools/list", json!({}), &[]).await;
        expect("tools/call", json!({"name": "often"}), &[["call", "often", "allow", "yes"]]).await;
        expect("tools/call", json!({"name": "often"}), &[["call", "often", "limit", "rate"]]).await;
        expect("tools/call", json!({"name": "other"}), &[["call", "other", "hide", ""]]).await;
        expect("completion/complete", complete("yes"), &[["complete", "yes", "allow", "yes"]]).await;
        expect("completion/complete", complete("no"), &[["complete", "no", "deny", "no"]]).await;
        // The client has nobody to ask.
        expect("tools/call", json!({"name": "ask"}), &[["call", "ask", "confirm", "ask"]]).await;
    }
    for revision in [R4, R5] {
        let caller = Caller::new().with(Authenticated::new("ann"));
        let mut client = open(&server, caller, revision, json!({"elicitation": {}})).await;
        for action in ["accept", "decline"] {
            client.answer = Box::new(move |_, _| json!({"action": action, "content": {}}));
            client.call("tools/call", json!({"name": "ask"})).await;
            assert_eq!(records(), [["ann", "call", "ask", "confirm", "ask"]], "{revision} {action}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rates_count_up_to_the_rule_that_decides_and_the_longest_wait_counts() {
    let all = json!([
        {"name": "minute", "rate": {"calls": 2, "seconds": 60}},
        {"name": "hour", "rate": {"calls": 2, "seconds": 3600}},
        {"name": "other minute", "rate": {"calls": 2, "seconds": 60}},
        {"name": "first", "tools": ["a"], "decision": "allow"},
        {"name": "once", "rate": {"calls": 1, "seconds": 3600}},
        {"name": "second", "decision": "allow"},
    ]);
    let (rules, records) = audited(all.clone());
    let server = Server::new("s", "0")
        .tool(tool("a", || async { "a" }))
        .tool(tool("b", || async { "b" }))
        .gate(rules.clone());
    let mut client = Client::open(&server, R5, json!({})).await;
    let mut wait = async |name: &str| {
        client.call("tools/call", json!({"name": name})).await["error"]["data"]["retryAfterMs"].as_u64()
    };
    // The rule `once` stands behind the one that decides.
    assert_eq!((wait("a").await, wait("a").await), (None, None));
    // The same rules again forget nothing.
    rules.replace(set(all)).unwrap();
    records();
    let longest = wait("a").await.unwrap();
    assert!((1_700_000..=1_800_000).contains(&longest), "{longest}");
    assert_eq!(records().len(), 1, "one line for both limits");
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(wait("b").await, None);
    assert!(wait("b").await.unwrap() > 3_000_000, "`once` stands before the rule that decides");
}

#[tokio::test]
async fn what_the_rules_allow_and_something_else_refuses_is_a_line() {
    let (rules, records) = audited(json!([
        {"name": "ask", "tools": ["asked"], "decision": "confirm"},
        {"name": "all", "decision": "allow"},
    ]));
    let inner = Server::new("inner", "0").tool(tool("run", || async { "ran" }));
    let server = Server::new("s", "0")
        .tool(tool("a", || async { "ran" }).requires(["write"]))
        .tool(tool("asked", || async { "ran" }).requires(["write"]))
        .tool(tool("denied", || async { "ran" }))
        .tool(tool("hidden", || async { "ran" }))
        .tool(tool("unseen", || async { "ran" }).requires(["write"]).hidden())
        .resource(resource("r://r", "r", || async { "read" }).requires(["read"]))
        .provider(Mount::new("m", inner.clone()).requires(["write"]))
        .provider(Mount::new("u", inner.clone()).requires(["write"]).hidden())
        .mount("g", inner.gate(|_: &GateRequest<'_>| Decision::Hide))
        .gate(|request: &GateRequest<'_>| match request.name() {
            "denied" => Decision::Deny("it is Monday".to_owned()),
            "hidden" => Decision::Hide,
            _ => Decision::Allow,
        })
        .gate(rules);
    let requests = [
        ("tools/call", json!({"name": "a"}), ["call", "a"]),
        ("tools/call", json!({"name": "asked"}), ["call", "asked"]),
        ("tools/call", json!({"name": "denied"}), ["call", "denied"]),
        ("tools/call", json!({"name": "hidden"}), ["call", "hidden"]),
        ("tools/call", json!({"name": "unseen"}), ["call", "unseen"]),
        ("tools/call", json!({"name": "m_run"}), ["call", "m_run"]),
        ("tools/call", json!({"name": "u_run"}), ["call", "u_run"]),
        ("tools/call", json!({"name": "g_run"}), ["call", "g_run"]),
        ("resources/read", json!({"uri": "r://r"}), ["read", "r://r"]),
    ];
    let expected = |principal: &str, [access, name]: [&str; 2]| {
        [[principal, access, name, "deny", ""].map(str::to_owned)]
    };
    for revision in [R4, R5] {
        let caller = Caller::new().with(Authenticated::new("ann").rights(|_| false));
        let mut client = open(&server, caller, revision, json!({"elicitation": {}})).await;
        for (method, params, target) in &requests {
            let refused = client.call(method, params.clone()).await;
            assert!(refused["error"].is_object(), "{refused}");
            assert_eq!(records(), expected("ann", *target), "{revision}");
        }
    }
    // Over HTTP, missing rights are found out earlier.
    #[cfg(feature = "http-server")]
    for (id, (method, params, target)) in (1..).zip(&requests) {
        let http = server.http().unwrap();
        let session = Wire::new(&http).open(R4, json!({})).await;
        let in_session = session.call(id, method, params.clone()).await;
        let stateless = Wire::new(&http).modern(id, method, params.clone(), json!({})).await;
        for mut refused in [in_session, stateless] {
            let refused = refused.json().await;
            assert!(refused["error"].is_object(), "{refused}");
        }
        let [line] = expected("@anonymous", *target);
        assert_eq!(records(), [line.clone(), line], "{method}");
    }
}

#[tokio::test]
async fn a_hidden_method_is_a_line() {
    let (rules, records) = audited(json!([{"name": "no", "methods": ["*"], "decision": "hide"}]));
    let own = |name| {
        Server::new(name, "0")
            .method(method("example/run", |_: Cx, _: Value| async { Ok::<_, RequestError>(json!({})) }))
    };
    let outer = || Server::new("outer", "0");
    for server in [
        own("own").gate(rules.clone()),
        outer().provider(own("inner")).gate(rules.clone()),
        outer().provider(own("inner").gate(rules.clone())),
    ] {
        let mut client = Client::open(&server, R4, json!({})).await;
        assert_eq!(client.call("example/run", json!({})).await["error"]["code"], -32601);
        assert_eq!(records(), [["@local", "call", "example/run", "hide", "no"]]);
    }
}
