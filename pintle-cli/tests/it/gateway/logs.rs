//! The access log: one line for each request.

use pintle::client::Mode;
use serde_json::{Value, json};

use super::{connect, file, gateway, names, page};
use crate::support::machine::Machine;

#[tokio::test]
async fn every_request_is_a_line_without_arguments() {
    let machine = Machine::new("gateway-log");
    let rules = "[[rules]]\ntools = [\"two_berth\"]\ndecision = \"deny\"\n[[rules]]\ndecision = \"allow\"\n";
    let gateway = gateway(&machine, &format!("access_log = \"access.jsonl\"\n{}", file(rules)));
    for mode in [Mode::Legacy, Mode::Modern] {
        let alice = connect(&format!("{}/two", gateway.url), "alice-token", mode).await;
        names(&alice, |names| names.len() == 2).await;
        alice.call_tool("two_tide", json!({"port": "bergen", "hour": 4})).await.unwrap();
        alice.call_tool("two_berth", json!({"ship": "s3cret"})).await.unwrap_err();
    }
    page(&gateway, "/mcp?token=s3cret", "nobody-token");
    let text = machine.read("access.jsonl");
    assert!(!text.contains("bergen") && !text.contains("s3cret") && !text.contains("-token"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<_> = lines.iter().filter(|line| line["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 4, "{text}");
    for pair in calls.chunks(2) {
        let [allowed, denied] = pair else { panic!("{pair:?}") };
        for (line, name, status) in [(allowed, "two_tide", "ok"), (denied, "two_berth", "error")] {
            assert_eq!((&line["principal"], &line["path"]), (&json!("ALICE"), &json!("/mcp/two")), "{line}");
            assert_eq!((&line["name"], &line["status"]), (&json!(name), &json!(status)), "{line}");
            assert!(line["durationMs"].is_u64() && line["timeMs"].is_u64(), "{line}");
        }
        assert_eq!(allowed["backend"], "two", "{allowed}");
        assert!(denied.get("backend").is_none() && denied["code"].is_i64(), "{denied}");
    }
    let refused: Vec<_> = lines.iter().filter(|line| line["status"] == "refused").collect();
    assert_eq!(refused.len(), 1, "{text}");
    assert_eq!((&refused[0]["code"], &refused[0]["path"]), (&json!(401), &json!("/mcp")));
}
