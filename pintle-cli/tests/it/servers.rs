//! The servers that are configured on a machine.

use serde_json::{Value, json};

use crate::support::{Printed, machine::Machine};

fn servers(printed: &Printed) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&printed.stdout).unwrap();
    listed["servers"].as_array().unwrap().clone()
}

#[test]
fn every_host_is_listed_without_secrets() {
    let machine = Machine::new("inventory");
    let claude = json!({"mcpServers": {
        "search": {"command": "npx", "args": ["-y", "@scope/search", "--key", "s3cret"], "env": {"KEY": "s3cret"}},
    }, "projects": {"/elsewhere": {"mcpServers": {"other": {"command": "x", "args": ["s3cret"]}}}}});
    machine.write("home/.claude.json", &claude.to_string());
    machine.write(
        "home/.codex/config.toml",
        "[mcp_servers.docs]\nurl = 'https://u:s3cret@e.test/mcp?k=s3cret'\nenabled = false\n",
    );
    machine.write("home/.copilot/mcp-config.json", "{ not JSON");
    let printed = machine.typed(&["servers"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    for shown in [
        "  search   stdio npx -y @scope/search (2 arguments)\n",
        "  other    stdio x (1 argument)  in /elsewhere\n",
        "  docs     http  https://e.test/mcp  disabled\n",
        "  secret   http  http://127.0.0.1:1/mcp\n",
        "Cursor  ",
        ".mcp.json  not approved\n",
    ] {
        assert!(printed.stdout.contains(shown), "{shown}: {}", printed.stdout);
    }
    for note in ["mcp-config.json", "server `broken`"] {
        assert!(printed.stderr.contains(note), "{}", printed.stderr);
    }
    let json = machine.typed(&["servers", "--json"]);
    for printed in [&printed, &json] {
        assert!(!printed.stdout.contains("s3cret") && !printed.stderr.contains("s3cret"), "{printed:?}");
    }
    let rows = servers(&json);
    let hosts: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {}", row["host"].as_str().unwrap(), row["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        hosts,
        [
            "claude-code search",
            "claude-code other",
            "codex docs",
            "cursor harbour",
            "cursor secret",
            "claude-code local"
        ]
    );
    assert_eq!((&rows[5]["approved"], &rows[5]["scope"]), (&json!(false), &json!("project")));
}

#[test]
fn a_check_connects_to_each() {
    let machine = Machine::new("check");
    machine.write(
        "home/.cursor/mcp.json",
        &json!({"mcpServers": {
            "harbour": {"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"], "disabledTools": ["tide"]},
            "absent": {"command": "/no/such/program"},
            "off": {"command": "/no/such/program", "disabled": true},
            "closed": {"url": "http://127.0.0.1:1/mcp"},
        }})
        .to_string(),
    );
    let printed = machine.typed(&["servers", "--check", "--json"]);
    assert_eq!(printed.code, Some(6), "{printed:?}");
    let rows = servers(&printed);
    let tools = machine.typed(&["ls", "harbour", "--pick", ".tools[].name"]).stdout.lines().count();
    assert_eq!(
        rows[0]["check"],
        json!({"status": "ok", "revision": "2026-07-28", "era": "stateless", "tools": tools})
    );
    assert_eq!(rows[1]["check"]["kind"], "unreachable");
    assert_eq!(rows[2]["check"], json!({"status": "skipped", "reason": "disabled"}));
    assert_eq!(rows[3]["check"]["status"], "failed");
    // The project's file was not approved.
    assert_eq!(rows[4]["check"], json!({"status": "skipped", "reason": "not approved"}));
    let printed = machine.typed(&["servers", "--check"]);
    assert!(
        printed.stdout.contains(&format!("✓ {tools} tools, 2026-07-28 without a session\n")),
        "{}",
        printed.stdout
    );
    assert!(printed.stderr.contains("2 of 5 servers cannot be used"), "{}", printed.stderr);
}

#[cfg(unix)]
#[test]
fn a_server_that_does_not_answer_does_not_delay_the_others_forever() {
    let machine = Machine::new("silent");
    let silent = json!({"command": "sh", "args": ["-c", "while read line; do :; done"]});
    machine.write("home/.cursor/mcp.json", &json!({"mcpServers": {"silent": silent}}).to_string());
    let printed = machine.typed(&["servers", "--check", "--timeout", "300ms", "--json"]);
    let rows = servers(&printed);
    assert_eq!((printed.code, &rows[0]["check"]["kind"]), (Some(6), &json!("timeout")), "{rows:?}");
}
