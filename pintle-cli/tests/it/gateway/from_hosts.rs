//! A file out of what hosts have configured.

use serde_json::json;

use crate::support::machine::Machine;

#[test]
fn a_file_is_made_of_what_is_configured_and_has_no_secrets() {
    let machine = Machine::new("gateway-hosts");
    let cursor = json!({"mcpServers": {
        "harbour": {"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"], "env": {"LOG": "s3cret", "KEY": "${HARBOUR_KEY}"}},
        "my notes": {"url": "https://notes.example/mcp", "headers": {"Authorization": "Bearer s3cret", "X-Key": "${NOTES_KEY}"}},
        "docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
        "query": {"url": "https://query.example/mcp?key=s3cret"},
        "words": {"command": "uvx", "args": ["server", "--api-key", "s3cret"]},
        "off": {"command": "uvx", "args": ["server"], "disabled": true},
    }});
    machine.write("home/.cursor/mcp.json", &cursor.to_string());
    let printed = machine.typed(&["gateway", "--from-hosts"]);
    let text = &printed.stdout;
    assert!(!text.contains("s3cret"), "{text}");
    for expected in [
        "[targets.harbour]",
        r#"env = { "LOG" = { env = "LOG" }, "KEY" = { env = "HARBOUR_KEY" } }"#,
        "[targets.my-notes]\nurl = \"https://notes.example/mcp\"",
        r#"headers = { "Authorization" = { bearer_env = "MY_NOTES_AUTHORIZATION" }, "X-Key" = { env = "NOTES_KEY" } }"#,
        r#"headers = { "Authorization" = { bearer_env = "DOCS_TOKEN" } }"#,
        "[targets.query]\nserver = \"query\"",
        "[targets.words]\nserver = \"words\"",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert!(!text.contains("targets.off") && !text.contains("targets.local"), "{text}");
    assert!(
        printed.stderr.contains("`local` of") && printed.stderr.contains("not approved"),
        "{}",
        printed.stderr
    );
    let written = machine.typed(&["gateway", "--from-hosts", "team.toml"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    assert_eq!(machine.read("project/team.toml").trim(), text.trim());
    let again = machine.typed(&["gateway", "--from-hosts", "team.toml"]);
    assert_ne!(again.code, Some(0), "a file is not replaced: {again:?}");
}
