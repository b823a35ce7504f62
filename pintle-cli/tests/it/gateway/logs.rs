//! The access log, with one line for each request, and the audit log.

use pintle::{
    Server,
    client::Mode,
    server::{ToolError, tool},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{connect, ended, file, gateway, names, page};
use crate::support::machine::Machine;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
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
    let text = ended(gateway, &machine, "access.jsonl");
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

/// Says that it was dropped.
struct Dropped(mpsc::Sender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.try_send("dropped").unwrap();
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_line_says_how_a_request_has_ended_and_keeps_no_secret_of_a_name() {
    let (message, mut says) = mpsc::channel(4);
    let wait = tool("wait", move || {
        let message = message.clone();
        async move {
            message.send("begun").await.unwrap();
            let _dropped = Dropped(message);
            std::future::pending::<String>().await
        }
    });
    let fail = tool("fail", || async { Err::<String, ToolError>(ToolError::new("it failed")) });
    let server = Server::new("slow", "0").tool(wait).tool(fail).tool(tool("ask", || async { "asked" }));
    let serving = server.serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-log-ends");
    let rules =
        "[[rules]]\ntools = [\"slow_ask\"]\ndecision = \"confirm\"\n[[rules]]\ndecision = \"allow\"\n";
    let target = super::target("slow", serving.address());
    let gateway = gateway(&machine, &format!("access_log = \"access.jsonl\"\n{target}{rules}"));
    let (old, alice) = (
        connect(&gateway.url, "alice-token", Mode::Legacy).await,
        connect(&gateway.url, "alice-token", Mode::Modern).await,
    );
    names(&old, |names| !names.is_empty()).await;
    let failed = alice.call_tool("slow_fail", ()).await;
    assert!(format!("{failed:?}").contains("it failed"), "{failed:?}");
    alice.call_tool("slow_ask", ()).await.unwrap_err();
    alice.read_resource("slow://r?key=s3cret").await.unwrap_err();
    let task = json!({"taskId": "s3cret"});
    old.request::<_, Value>("tasks/get", &task).await.unwrap_err();
    let waiting = tokio::spawn(async move { alice.call_tool("slow_wait", ()).await });
    assert_eq!(says.recv().await, Some("begun"));
    waiting.abort();
    assert_eq!(says.recv().await, Some("dropped"));
    let text = ended(gateway, &machine, "access.jsonl");
    assert!(!text.contains("s3cret") && !text.contains("notifications/"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_method = |method: &str| lines.iter().filter(|line| line["method"] == method).collect::<Vec<_>>();
    let ends: Vec<_> = of_method("tools/call").iter().map(|line| (&line["name"], &line["status"])).collect();
    let end = |name: &str, status: &str| (json!(name), json!(status));
    let expected = [
        end("slow_fail", "tool_error"),
        end("slow_ask", "asks"),
        end("slow_ask", "error"),
        end("slow_wait", "cancelled"),
    ];
    assert_eq!(ends, expected.each_ref().map(|(name, status)| (name, status)), "{text}");
    assert_eq!(of_method("resources/read")[0]["name"], "slow://r", "{text}");
    assert_eq!(of_method("tasks/get").len(), 1, "{text}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_is_for_its_owner_and_opened_again_on_a_hangup() {
    use std::os::unix::fs::PermissionsExt as _;

    let machine = Machine::new("gateway-log-rotated");
    let gateway = gateway(&machine, "audit = \"audit.jsonl\"\n[targets.one]\nserver = \"demo\"\n");
    let alice = connect(&gateway.url, "alice-token", Mode::Modern).await;
    names(&alice, |names| !names.is_empty()).await;
    std::fs::rename(machine.path("audit.jsonl"), machine.path("audit.1")).unwrap();
    let mode = std::fs::metadata(machine.path("audit.1")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let hangup = std::process::Command::new("kill").args(["-HUP", &gateway.id().to_string()]).status();
    assert!(hangup.unwrap().success());
    gateway.printed("the logs are opened again").await;
    alice.read_resource("harbour://notice?key=s3cret").await.unwrap_err();
    alice.call_tool("one_tide", json!({"port": "bergen", "hour": 4})).await.unwrap();
    let audit = ended(gateway, &machine, "audit.jsonl");
    assert!(audit.contains("\"one_tide\"") && !audit.contains("s3cret"), "{audit}");
    assert_eq!(machine.read("audit.1"), "");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_cannot_be_written_is_reported_counted_and_stops_calls_if_it_is_required() {
    for required in [false, true] {
        let machine = Machine::new("gateway-log-full");
        let options = format!("audit = \"/dev/full\"\naudit_required = {required}\n");
        let gateway = gateway(&machine, &format!("{options}[targets.one]\nserver = \"demo\"\n"));
        let alice = connect(&gateway.url, "alice-token", Mode::Modern).await;
        names(&alice, |names| !names.is_empty()).await;
        let call = async || alice.call_tool("one_tide", json!({"port": "bergen", "hour": 4})).await;
        // Nobody knows before the first line.
        call().await.unwrap();
        gateway.printed("the log `/dev/full` cannot be written: No space left on device").await;
        let metrics = page(&gateway, "/metrics", "alice-token");
        assert!(metrics.contains("pintle_gateway_log_failing{log=\"audit\"} 1"), "{metrics}");
        match call().await {
            Ok(_) => assert!(!required),
            Err(error) => assert!(
                required && error.to_string().contains("the audit log of the gateway cannot be written")
            ),
        }
        assert!(!alice.tools().await.unwrap().is_empty(), "lists go on");
    }
}
