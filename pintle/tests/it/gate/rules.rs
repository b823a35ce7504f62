//! Rules of a file: who decides, what is counted, what is written down.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Server,
    server::{Authenticated, Caller, Decision, Entry, Principal, RuleSet, Rules, resource, tool},
    types::schema::Tool,
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R4, R5},
    line_client::Raw,
};

fn set(rules: Value) -> RuleSet {
    serde_json::from_value(rules).unwrap()
}

fn rules(rules: Value) -> Rules {
    Rules::new(set(json!({ "rules": rules }))).unwrap()
}

fn tool_of(name: &str, annotations: Value) -> Tool {
    serde_json::from_value(json!({"name": name, "inputSchema": {}, "annotations": annotations})).unwrap()
}

fn decide(rules: &Rules, caller: Principal<'_>, tool: &Tool, arguments: Value) -> (String, String) {
    let (has, arguments) = (|right: &str| right == "write", arguments.to_string());
    let explained = rules.explain(caller, has, Some("git"), Entry::Tool(tool), &arguments);
    let decision = match explained.decision {
        Decision::Allow => "allow".to_owned(),
        Decision::Confirm(question) => format!("confirm {question}"),
        Decision::Deny(reason) => format!("deny {reason}"),
        Decision::Hide => "hide".to_owned(),
        Decision::Limit(_) => "limit".to_owned(),
    };
    (decision, explained.rule.unwrap_or_default())
}

#[test]
fn each_condition_decides() {
    let (ann, plain) = (Principal::Named("ann"), tool_of("git_push", json!({})));
    for (condition, matching, other) in [
        (json!({"tools": ["git_*"]}), (ann, "git_push", json!({})), (ann, "rm", json!({}))),
        (json!({"prompts": ["git_*"], "tools": ["a"]}), (ann, "a", json!({})), (ann, "git_push", json!({}))),
        (json!({"backends": ["g*"]}), (ann, "a", json!({})), (ann, "", json!({}))),
        (json!({"principals": ["a*"]}), (ann, "a", json!({})), (Principal::Named("bob"), "a", json!({}))),
        (
            json!({"principals": ["@local"]}),
            (Principal::Local, "a", json!({})),
            (Principal::Named("@local"), "a", json!({})),
        ),
        (
            json!({"principals": ["@anonymous"]}),
            (Principal::Anonymous, "a", json!({})),
            (ann, "a", json!({})),
        ),
        (json!({"principals": ["@named"]}), (ann, "a", json!({})), (Principal::Anonymous, "a", json!({}))),
        (json!({"principals": ["*"]}), (ann, "a", json!({})), (Principal::Anonymous, "a", json!({}))),
        (json!({"rights": ["write"]}), (ann, "a", json!({})), (Principal::Anonymous, "a", json!({}))),
        (
            json!({"arguments": {"branch": "rel-*"}}),
            (ann, "a", json!({"branch": "rel-1"})),
            (ann, "a", json!({"branch": "x"})),
        ),
        (
            json!({"arguments": {"to.host": "a", "n": 1}}),
            (ann, "a", json!({"to": {"host": "a"}, "n": 1.0})),
            (ann, "a", json!({"to": {}, "n": 1})),
        ),
        (json!({"arguments": {"force": true}}), (ann, "a", json!({"force": true})), (ann, "a", json!({}))),
    ] {
        let mut rule = condition.clone();
        rule["decision"] = "allow".into();
        let rules = rules(json!([rule]));
        for ((caller, name, arguments), expected) in [(matching, "allow"), (other, "hide")] {
            let backendless = condition.get("backends").is_some() && name.is_empty();
            let tool = tool_of(name, json!({}));
            let decision = if backendless {
                let explained = rules.explain(caller, |_| true, None, Entry::Tool(&tool), "{}");
                if explained.decision == Decision::Hide { "hide".to_owned() } else { "allow".to_owned() }
            } else {
                decide(&rules, caller, &tool, arguments).0
            };
            assert_eq!(decision, expected, "{condition} {caller:?} {name}");
        }
    }
    let first = rules(json!([
        {"name": "rate", "rate": {"calls": 1, "seconds": 1}},
        {"name": "no force", "arguments": {"force": true}, "decision": "deny", "reason": "gently"},
        {"tools": ["git_*"], "decision": "confirm"},
        {"decision": "allow"},
    ]));
    assert_eq!(
        decide(&first, ann, &plain, json!({"force": true})),
        ("deny gently".into(), "no force".into())
    );
    let (question, rule) = decide(&first, ann, &plain, json!({"force": false}));
    assert_eq!(
        (question.contains("git_push") && question.contains("\"force\":false"), &*rule),
        (true, "rule 3")
    );
    assert_eq!(decide(&first, ann, &tool_of("a", json!({})), json!({})), ("allow".into(), "rule 4".into()));
}

#[test]
fn a_tool_without_hints_is_as_bad_as_the_protocol_says() {
    let careful = rules(json!([{"hints": {"read_only": true}, "decision": "allow"},
        {"hints": {"destructive": true}, "decision": "deny"}, {"decision": "confirm"}]));
    for (hints, expected) in [
        (json!({}), "deny"),
        (json!({"readOnlyHint": true, "destructiveHint": true}), "allow"),
        (json!({"readOnlyHint": false, "destructiveHint": false}), "confirm"),
    ] {
        let (decision, _) = decide(&careful, Principal::Local, &tool_of("t", hints.clone()), json!({}));
        assert!(decision.starts_with(expected), "{hints} {decision}");
    }
    // What changes nothing destroys nothing, and may be repeated.
    let reading =
        tool_of("t", json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false}));
    for (hints, expected) in [
        (json!({"destructive": true}), "hide"),
        (json!({"destructive": false}), "allow"),
        (json!({"idempotent": true}), "allow"),
        (json!({"idempotent": false}), "hide"),
        (json!({"open_world": true}), "allow"),
    ] {
        let one = rules(json!([{"hints": hints, "decision": "allow"}]));
        assert_eq!(decide(&one, Principal::Local, &reading, json!({})).0, expected, "{hints}");
    }
}

#[test]
fn a_question_shows_no_more_than_the_beginning_of_long_arguments() {
    let confirm = rules(json!([{"decision": "confirm", "reason": "Sure?"}]));
    let long = json!({"text": "x".repeat(10_000)});
    let (question, _) = decide(&confirm, Principal::Local, &tool_of("a", json!({})), long);
    assert!(question.starts_with("confirm Sure?\n\n`a` with {\"text\":\"xxx"), "{question}");
    assert!(question.ends_with("… and 8011 characters more") && question.len() < 2_100, "{question}");
}

/// In a list there are no arguments, and only tools have hints.
#[tokio::test]
async fn a_tool_is_listed_if_some_arguments_are_allowed_and_hints_are_those_of_tools() {
    let server = Server::new("s", "0")
        .tool(tool("a", || async { "a" }))
        .tool(tool("b", || async { "b" }))
        .resource(resource("r://r", "r", || async { "r" }))
        .gate(rules(json!([
            {"tools": ["a"], "arguments": {"force": true}, "decision": "deny"},
            {"tools": ["b"], "arguments": {"force": true}, "decision": "hide"},
            {"hints": {"destructive": true}, "decision": "allow"},
        ])));
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        let tools = client.call("tools/list", json!({})).await["result"]["tools"].clone();
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["a", "b"], "{revision}");
        for name in ["a", "b"] {
            assert_eq!(client.tool(name).await, name);
            let forced = client.call("tools/call", json!({"name": name, "arguments": {"force": true}})).await;
            assert!(forced["error"].is_object(), "{forced}");
        }
        let resources = client.call("resources/list", json!({})).await["result"]["resources"].clone();
        assert_eq!(resources, json!([]), "{revision}");
    }
}

#[test]
fn wrong_rules_are_refused_with_their_name() {
    for (rule, expected) in [
        (json!({"name": "x"}), "x: it decides nothing"),
        (json!({"principals": ["@localhost"], "decision": "allow"}), "rule 1: `@localhost` is not a kind"),
        (json!({"rate": {"calls": 0, "seconds": 1}}), "`calls` is 0"),
    ] {
        let error = Rules::new(set(json!({"rules": [rule]}))).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let of_arguments = |count: usize| {
        let arguments: serde_json::Map<_, _> =
            (0..count).map(|number| (format!("a{number}"), json!(1))).collect();
        Rules::new(set(json!({"rules": [{"arguments": arguments, "decision": "deny"}]})))
    };
    of_arguments(64).unwrap();
    assert!(of_arguments(65).unwrap_err().to_string().contains("more than 64 arguments"));
    for unreadable in [json!({"rules": [{"tool": ["a"]}]}), json!({"rules": [{"decision": "maybe"}]})] {
        serde_json::from_value::<RuleSet>(unreadable).unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn rates_are_counted_for_each_principal_and_refill() {
    let server = Server::new("s", "0")
        .tool(tool("a", || async { "a" }))
        .tool(tool("b", || async { "b" }))
        .gate(rules(json!([
            {"rate": {"calls": 2, "seconds": 60}},
            {"tools": ["b"], "rate": {"calls": 1, "seconds": 60, "per": "tool"}, "decision": "allow"},
            {"decision": "allow"},
        ])));
    for revision in ALL {
        // Rounds of several revisions do not disturb each other.
        tokio::time::advance(Duration::from_secs(120)).await;
        let open = async |name: &'static str| {
            Client::over(
                Raw::known(&server, Caller::new().with(Authenticated::new(name))),
                revision,
                json!({}),
            )
            .await
        };
        let (mut ann, mut bob) = (open("ann").await, open("bob").await);
        for _ in 0..10 {
            ann.call("tools/list", json!({})).await;
        }
        let wait = async |client: &mut Client, name: &str| {
            client.call("tools/call", json!({"name": name})).await["error"]["data"]["retryAfterMs"].as_u64()
        };
        assert_eq!(wait(&mut ann, "a").await, None);
        assert_eq!(wait(&mut ann, "b").await, None);
        assert!(wait(&mut ann, "a").await.is_some_and(|wait| (29_000..=30_000).contains(&wait)));
        assert!(wait(&mut bob, "b").await.is_some_and(|wait| wait > 50_000), "b was called by ann");
        assert_eq!(wait(&mut bob, "a").await, None);
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(wait(&mut ann, "a").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_stay_counted_when_other_rules_change() {
    let rate = |calls: u32| json!({"rate": {"calls": calls, "seconds": 60, "per": "all"}});
    let named = |calls: u32, tools: &str| json!({"name": "slow", "tools": [tools], "rate": {"calls": calls, "seconds": 60, "per": "all"}});
    let (other, allow) = (json!({"tools": ["b"], "decision": "deny"}), json!({"decision": "allow"}));
    for (before, after, is_counted) in [
        (rate(2), vec![rate(2)], true),
        (rate(2), vec![other.clone(), rate(2)], true),
        (rate(2), vec![rate(3)], false),
        (named(2, "*"), vec![other.clone(), named(2, "a*")], true),
        (named(2, "*"), vec![named(3, "*")], false),
    ] {
        let with = |mut rules: Vec<Value>| {
            rules.push(allow.clone());
            set(json!({ "rules": rules }))
        };
        let rules = Rules::new(with(vec![before])).unwrap();
        let server = Server::new("s", "0").tool(tool("a", || async { "a" })).gate(rules.clone());
        let mut client = Client::over(Raw::known(&server, Caller::new()), R5, json!({})).await;
        for _ in 0..2 {
            assert!(client.call("tools/call", json!({"name": "a"})).await["error"].is_null());
        }
        rules.replace(with(after.clone())).unwrap();
        let refused = !client.call("tools/call", json!({"name": "a"})).await["error"].is_null();
        assert_eq!(refused, is_counted, "{after:?}");
    }
}

#[tokio::test]
async fn rules_can_be_replaced_and_every_decision_is_written_down_once() {
    let records = Arc::new(Mutex::new(Vec::new()));
    let written = records.clone();
    let set_of =
        |decision: &str| set(json!({"rules": [{"name": "all", "decision": decision, "reason": "no"}]}));
    let rules = Rules::audited(set_of("allow"), move |record| {
        let mut record = serde_json::to_value(record).unwrap();
        assert!(record["timeMs"].as_u64().unwrap() > 1_700_000_000_000);
        record.as_object_mut().unwrap().remove("timeMs");
        written.lock().unwrap().push(record);
    })
    .unwrap();
    let server = Server::new("s", "0")
        .tool(tool("a", || async { "a" }))
        .resource(resource("r://r", "r", || async { "r" }))
        .gate(rules.clone());
    let mut client = Client::open(&server, R5, json!({})).await;
    client.call("tools/list", json!({})).await;
    for decision in ["allow", "deny", "hide"] {
        rules.replace(set_of(decision)).unwrap();
        client.call("tools/call", json!({"name": "a", "arguments": {"password": "hunter2"}})).await;
        client.call("resources/read", json!({"uri": "r://r"})).await;
        let filter = json!({"notifications": {"resourceSubscriptions": ["r://r"]}});
        match decision {
            "deny" => drop(client.call("subscriptions/listen", filter).await),
            _ => {
                client.send("subscriptions/listen", filter).await;
                client.receive().await;
            }
        }
        if decision == "allow" {
            // Nothing is written down for what it leads to.
            server.resource_updated("r://r");
            assert_eq!(client.receive().await["params"]["uri"], "r://r");
        }
        let record = |access: &str, name: &str| json!({"principal": "@local", "access": access, "name": name, "decision": decision, "rule": "all"});
        let records = std::mem::take(&mut *records.lock().unwrap());
        let expected = [record("call", "a"), record("read", "r://r"), record("subscribe", "r://r")];
        assert_eq!(records, expected, "{decision}");
    }
}

#[tokio::test]
async fn a_subscription_is_written_down_once_by_the_rules_of_a_mounted_server_too() {
    for (is_gate_of_owner, era) in [(true, R5), (false, R5), (true, R4), (false, R4)] {
        let records = Arc::new(Mutex::new(Vec::new()));
        let written = records.clone();
        let set_of = |decision: &str| set(json!({"rules": [{"name": "all", "decision": decision}]}));
        let rules = Rules::audited(set_of("allow"), move |record| {
            written.lock().unwrap().push((record.access, record.decision, record.backend.map(str::to_owned)));
        })
        .unwrap();
        // The rules are those of the server that has the resource, or of one that it is mounted in.
        let owner = Server::new("owner", "0").resource(resource("r://r", "r", || async { "r" }));
        let (server, backend) = match is_gate_of_owner {
            true => (Server::new("s", "0").provider(owner.clone().gate(rules.clone())), None),
            false => {
                let middle = Server::new("middle", "0").provider(owner.clone()).gate(rules.clone());
                (Server::new("s", "0").provider(middle), Some("owner".to_owned()))
            }
        };
        let mut client = Client::open(&server, era, json!({})).await;
        for decision in ["allow", "deny", "hide"] {
            rules.replace(set_of(decision)).unwrap();
            let params = json!({"notifications": {"resourceSubscriptions": ["r://r"]}});
            match (era, decision) {
                (R4, _) => drop(client.call("resources/subscribe", json!({"uri": "r://r"})).await),
                (_, "deny") => drop(client.call("subscriptions/listen", params).await),
                _ => {
                    client.send("subscriptions/listen", params).await;
                    client.receive().await;
                }
            }
            let records = std::mem::take(&mut *records.lock().unwrap());
            assert_eq!(records, [("subscribe", decision, backend.clone())], "{era}");
        }
    }
}
