//! What `--explain` says of a call, and what the call gets from the gateway.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle::{
    Client, Connection, Server,
    client::{Answer, Mode, http::Http},
    server::{http::HttpServing as Serving, tool},
};
use serde_json::{Value, json};

use super::gateway;
use crate::support::{machine::Machine, pintle, run};

/// A target whose tools have arguments of every shape.
async fn target() -> Serving {
    let push = tool("push", || async { "pushed" }).input_schema(json!({"type": "object", "properties": {
        "force": {"type": "boolean", "default": false},
        "branch": {"type": "string"},
        "count": {"type": "integer"},
        "path": {"type": "string"},
        "mode": {"type": "string"},
        "opts": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"kind": {"type": "string"}}}},
    }}));
    let server = Server::new("desk", "1").tool(push);
    let named = |name: &'static str| tool(name, || async { "done" }).input_schema(json!({"type": "object"}));
    let names = ["write", "pay", "ship", "list", "merge", "plain", "secret", "ask"];
    let server = names.into_iter().fold(server, |server, name| server.tool(named(name)));
    server.serve_http("127.0.0.1:0").await.unwrap()
}

fn file(target: &Serving) -> String {
    format!("[targets.desk]\nurl = \"http://{}/mcp\"\n{RULES}", target.address())
}

/// Rules with every kind of condition.
const RULES: &str = r#"
    tools.merge = { fix = { force = true }, default = { branch = "dev" } }
    tools.plain = { rename = "simple" }

    [servers.small]
    targets = ["desk"]
    only = ["desk_push", "desk_pay", "desk_merge"]
    tools.desk_push = { rename = "send", fix = { branch = "main" } }
    tools.desk_pay = { default = { amount = 500 } }

    [[servers.small.rules]]
    name = "not deep"
    arguments = { "opts.deep" = true }
    decision = "deny"
    reason = "not so deep"

    [[servers.small.rules]]
    decision = "allow"

    [[rules]]
    name = "no force"
    tools = ["desk_push"]
    arguments = { force = true }
    decision = "deny"
    reason = "do not force"

    [[rules]]
    name = "own branches"
    principals = ["BOB"]
    tools = ["desk_push"]
    arguments = { branch = { not = "bob-*" } }
    decision = "deny"
    reason = "this is not your branch"

    [[rules]]
    name = "no junk"
    tools = ["desk_push"]
    arguments = { "items.kind" = { one_of = ["junk", "spam-*"] } }
    decision = "deny"
    reason = "no junk"

    [[rules]]
    name = "served"
    tools = ["desk_write"]
    arguments = { path = "/srv/*", mode = { absent = true } }
    decision = "allow"

    [[rules]]
    name = "a mode"
    tools = ["desk_write"]
    arguments = { mode = { absent = false } }
    decision = "deny"
    reason = "leave the mode out"

    [[rules]]
    name = "large"
    tools = ["desk_pay"]
    arguments = { amount = { min = 100, max = 1000 } }
    decision = "confirm"

    [[rules]]
    name = "small"
    tools = ["desk_pay"]
    arguments = { amount = { max = 99.5 } }
    decision = "allow"

    [[rules]]
    name = "north"
    tools = ["desk_ship"]
    arguments = { "to.country" = { one_of = ["no", "dk"] } }
    decision = "allow"

    [[rules]]
    name = "exact"
    tools = ["desk_list"]
    arguments = { pages = [1, 2], "page.size" = 3 }
    decision = "allow"

    [[rules]]
    name = "not to main"
    tools = ["desk_merge"]
    arguments = { branch = { not = "main" }, force = true }
    decision = "allow"

    [[rules]]
    name = "to main"
    tools = ["desk_merge"]
    decision = "deny"
    reason = "not to main"

    [[rules]]
    name = "alice knows"
    tools = ["desk_secret"]
    principals = ["ALICE"]
    decision = "allow"

    [[rules]]
    name = "bob does not"
    tools = ["desk_secret"]
    decision = "hide"

    [[rules]]
    tools = ["desk_push", "desk_simple"]
    decision = "allow"
"#;

/// Every call by everybody: the path, the tool and its arguments.
const CALLS: &[(&str, &str, &str)] = &[
    ("", "desk_push", "{}"),
    ("", "desk_push", r#"{"force": true}"#),
    ("", "desk_push", r#"{"force": "true"}"#),
    ("", "desk_push", r#"{"force": null}"#),
    ("", "desk_push", r#"{"Force": true}"#),
    ("", "desk_push", r#"{"branch": "main"}"#),
    ("", "desk_push", r#"{"branch": "bob-1"}"#),
    ("", "desk_push", r#"{"branch": ["bob-1"]}"#),
    ("", "desk_push", r#"{"branch": "bob-1", "items": [{"kind": "post"}]}"#),
    ("", "desk_push", r#"{"branch": "bob-1", "items": [{"kind": "post"}, {"kind": "spam-1"}]}"#),
    ("", "desk_push", r#"{"branch": "bob-1", "items": [{"kind": 1}]}"#),
    ("", "desk_push", r#"{"branch": "bob-1", "items": []}"#),
    ("", "desk_push", r#"{"branch": "bob-1", "items": [], "items.kind": "junk"}"#),
    ("", "desk_write", "{}"),
    ("", "desk_write", r#"{"path": "/srv/a"}"#),
    ("", "desk_write", r#"{"path": "/srv/../etc/passwd"}"#),
    ("", "desk_write", r#"{"path": "/srv/a/../b"}"#),
    ("", "desk_write", r#"{"path": "/srv\\..\\etc"}"#),
    ("", "desk_write", r#"{"path": "/etc/../srv/a"}"#),
    ("", "desk_write", r#"{"path": "/srv/a", "mode": "w"}"#),
    ("", "desk_write", r#"{"path": "/srv/a", "mode": null}"#),
    ("", "desk_write", r#"{"path": ["/srv/a", "/etc"]}"#),
    ("", "desk_pay", "{}"),
    ("", "desk_pay", r#"{"amount": 99}"#),
    ("", "desk_pay", r#"{"amount": 99.75}"#),
    ("", "desk_pay", r#"{"amount": 100}"#),
    ("", "desk_pay", r#"{"amount": 1000.5}"#),
    ("", "desk_pay", r#"{"amount": "100"}"#),
    ("", "desk_ship", r#"{"to": {"country": "no"}}"#),
    ("", "desk_ship", r#"{"to": {"country": "se"}}"#),
    ("", "desk_ship", r#"{"to": [{"country": "no"}, {"country": "se"}]}"#),
    ("", "desk_ship", r#"{"to": [{"country": "no"}, {"country": "dk"}]}"#),
    ("", "desk_ship", r#"{"to": "{\"country\": \"no\"}"}"#),
    ("", "desk_ship", r#"{"to.country": "no"}"#),
    ("", "desk_list", r#"{"pages": [1, 2], "page": {"size": 3.0}}"#),
    ("", "desk_list", r#"{"pages": [2, 1], "page": {"size": 3}}"#),
    ("", "desk_merge", "{}"),
    ("", "desk_merge", r#"{"branch": "rel"}"#),
    ("", "desk_merge", r#"{"branch": "main"}"#),
    ("", "desk_merge", r#"{"force": false}"#),
    ("", "desk_secret", "{}"),
    ("", "desk_simple", "{}"),
    ("", "desk_plain", "{}"),
    ("", "desk_ask", "{}"),
    ("desk", "desk_push", r#"{"force": true}"#),
    ("desk", "desk_merge", "{}"),
    ("small", "send", "{}"),
    ("small", "send", r#"{"branch": "bob-1"}"#),
    ("small", "send", r#"{"opts": {"deep": true}}"#),
    ("small", "send", r#"{"opts": {"deep": false}, "force": true}"#),
    ("small", "send", r#"{"opts": {"deep": true}, "force": true}"#),
    ("small", "send", r#"{"opts": "deep"}"#),
    ("small", "desk_push", "{}"),
    ("small", "desk_pay", "{}"),
    ("small", "desk_pay", r#"{"amount": 5}"#),
    ("small", "desk_merge", r#"{"branch": "main"}"#),
    ("small", "desk_secret", "{}"),
];

/// What `--explain` prints about a call: the decision, and the reason of a denial.
fn explained(machine: &Machine, words: [&str; 4]) -> (String, String) {
    let [path, principal, name, arguments] = words;
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--json", "--explain", principal, name, arguments]);
    if !path.is_empty() {
        command.args(["--server", path]);
    }
    let printed = run(command.current_dir(machine.path("")));
    let Ok(json) = serde_json::from_str::<Value>(&printed.stdout) else {
        // It is refused before a rule is asked.
        let failed: Value = serde_json::from_str(&printed.stderr).unwrap();
        return ("refused".to_owned(), failed["error"]["message"].as_str().unwrap().to_owned());
    };
    assert_eq!(json["explained"].as_array().map(Vec::len), Some(1), "{json}");
    let decision = json["explained"][0]["decision"].as_str().unwrap();
    match decision.split_once('(') {
        None => (decision.to_owned(), String::new()),
        Some((decision, reason)) => {
            let reason = serde_json::from_str(reason.strip_suffix(')').unwrap()).unwrap();
            (decision.to_owned(), reason)
        }
    }
}

/// What a client gets that calls, in the same words.
async fn called(client: &Connection, asked: &AtomicBool, name: &str, arguments: &str) -> (String, String) {
    asked.store(false, Ordering::SeqCst);
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let (is_allowed, text) = match client.call_tool(name, arguments).await {
        Ok(result) => (true, result.text()),
        Err(error) => (false, error.to_string()),
    };
    let decision = match (is_allowed, asked.load(Ordering::SeqCst)) {
        (_, true) => "Confirm",
        (true, false) => "Allow",
        (false, false) if text.contains("no such tool") => "Hide",
        (false, false) => "Deny",
    };
    (decision.to_owned(), text)
}

// The command is waited for on the thread of the test, and the target runs on the other ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_explained_is_what_a_call_gets() {
    let target = target().await;
    let machine = Machine::new("gateway-explained");
    let gateway = gateway(&machine, &file(&target));
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (principal, token) in [("ALICE", "alice-token"), ("BOB", "bob-token")] {
        for &(path, name, arguments) in CALLS {
            let (decision, reason) = explained(&machine, [path, principal, name, arguments]);
            let asked = Arc::new(AtomicBool::new(false));
            let noted = asked.clone();
            let client = Client::new("host", "1").mode(Mode::Modern).on_elicit(move |_| {
                noted.store(true, Ordering::SeqCst);
                async { Answer::Decline }
            });
            let url = format!("{}/{path}", gateway.url);
            let http = Http::new(url.trim_end_matches('/')).unwrap().bearer(token).unwrap();
            let client = client.connect(http).await.unwrap();
            let (got, text) = called(&client, &asked, name, arguments).await;
            let is_same = match decision.as_str() {
                // The words are those of the call.
                "refused" => got != "Allow" && reason.contains(&text),
                "Deny" => got == "Deny" && text.contains(&reason),
                decision => got == decision,
            };
            if !is_same {
                wrong.push(format!(
                    "{principal} {path} {name} {arguments}: {decision} {reason:?}, but {got} {text:?}"
                ));
            }
            seen.insert(decision);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["Allow", "Confirm", "Deny", "Hide", "refused"]);
}
