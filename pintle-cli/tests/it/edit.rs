//! Servers are added to the files of hosts, and removed.

use serde_json::{Value, json};

use crate::support::machine::Machine;

#[test]
fn a_server_is_added_removed_and_used() {
    let machine = Machine::new("add");
    let vscode = "home/.config/Code/User/mcp.json";
    let text =
        "{\n\t// mine\n\t\"servers\": {\n\t\t\"z\": { \"url\": \"https://e.test/mcp\" }, // last\n\t},\n}\n";
    machine.write(vscode, text);
    let program = env!("CARGO_BIN_EXE_pintle");
    let words = ["add", "tides", "--to", "claude-code,vscode,codex", "--env", "A=1", "--", program, "demo"];
    let dry = machine.typed(&[&words[..4], &["--dry-run"], &words[4..]].concat());
    assert_eq!(dry.code, Some(0), "{dry:?}");
    for line in [
        "VS Code  ",
        "  \t\t\"z\": { \"url\": \"https://e.test/mcp\" }, // last\n+ \t\t\"tides\": {\n",
        "+ [mcp_servers.tides]\n",
    ] {
        assert!(dry.stdout.contains(line), "{line}: {}", dry.stdout);
    }
    assert_eq!(machine.read(vscode), text);

    let added = machine.typed(&words);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.stdout.contains("(before: mcp.json.pintle.bak)"), "{}", added.stdout);
    let after = machine.read(vscode);
    assert!(after.starts_with(&text[..text.find(" // last").unwrap() + 8]), "{after}");
    assert_eq!(machine.read("home/.config/Code/User/mcp.json.pintle.bak"), text);
    let claude: Value = serde_json::from_str(&machine.read("home/.claude.json")).unwrap();
    let entry = json!({"type": "stdio", "command": program, "args": ["demo"], "env": {"A": "1"}});
    assert_eq!(claude, json!({"mcpServers": {"tides": entry}}));
    assert_eq!(machine.typed(&["ping", "tides"]).code, Some(0));

    let twice = machine.typed(&words);
    assert_eq!(twice.code, Some(1), "{twice:?}");
    assert!(
        twice.stderr.ends_with("  try: pintle add tides … --to claude-code --replace\n"),
        "{}",
        twice.stderr
    );
    let which = machine.typed(&["rm", "tides"]);
    assert!(
        which.stderr.ends_with("  try: pintle rm tides --from claude-code,codex,vscode\n"),
        "{}",
        which.stderr
    );
    let removed = machine.typed(&["rm", "tides", "--from", "claude-code,codex,vscode"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(machine.read(vscode), text);
    assert_eq!(machine.typed(&["ping", "tides"]).code, Some(1));
}

#[test]
fn if_one_host_cannot_have_it_none_is_changed() {
    let machine = Machine::new("none");
    let before = machine.read("home/.cursor/mcp.json");
    let refused = machine.typed(&["add", "docs", "https://e.test/mcp", "--to", "cursor,claude-desktop"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("names programs only"), "{}", refused.stderr);
    assert_eq!(machine.read("home/.cursor/mcp.json"), before);
    for (words, message) in [
        (&["add"][..], "`add` needs `--to`"),
        (&["add", "docs", "--to", "cursor"], "no server is given"),
        (&["add", "docs", "e.test", "more", "--to", "cursor"], "unexpected argument `more`"),
        (&["add", "docs", "e.test", "--to", "cusror"], "did you mean `cursor`?"),
        (&["add", "docs", "e.test", "--to", "cursor", "--timeout", "5s"], "nothing like `--timeout`"),
        (&["add", "copy", "secret", "--to", "vscode"], "has variables"),
        (&["add", "docs", "e.test", "--to", "windsurf", "--project"], "has no file of a project"),
        (&["rm", "harbuor"], "no host of the user has a server `harbuor`"),
    ] {
        let refused = machine.typed(words);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(message), "{message}: {}", refused.stderr);
    }
}

#[test]
fn a_server_of_a_project_is_added_to_it_and_still_needs_an_approval() {
    let machine = Machine::new("added-project");
    let program = env!("CARGO_BIN_EXE_pintle");
    let added =
        machine.typed(&["add", "own", "--to", "cursor", "--project", "--json", "--", program, "demo"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let changed: Value = serde_json::from_str(&added.stdout).unwrap();
    assert_eq!(changed["changed"][0]["backup"], Value::Null);
    assert_eq!(machine.typed(&["ping", "own"]).code, Some(7));
    assert_eq!(machine.typed(&["approve", ".cursor/mcp.json", "--yes"]).code, Some(0));
    assert_eq!(machine.typed(&["ping", "own"]).code, Some(0));
    // A configured server is copied; a path is made absolute.
    assert_eq!(machine.typed(&["add", "copy", "own", "--to", "kiro"]).code, Some(0));
    assert_eq!(machine.typed(&["add", "path", "--to", "kiro", "--", "./server", "./x"]).code, Some(0));
    let kiro: Value = serde_json::from_str(&machine.read("home/.kiro/settings/mcp.json")).unwrap();
    assert_eq!(kiro["mcpServers"]["copy"], json!({"command": program, "args": ["demo"]}));
    let path = kiro["mcpServers"]["path"]["command"].as_str().unwrap();
    assert!(std::path::Path::new(path).is_absolute() && path.ends_with("server"), "{path}");
}

#[test]
fn what_is_added_and_removed_leaves_the_file_as_it_was() {
    let machine = Machine::new("undone");
    let file = "home/.cursor/mcp.json";
    for text in [
        "{}",
        "{}\n",
        "{\"mcpServers\":{}}",
        "{\n  \"mcpServers\": {}\n}\n",
        "{\n  \"theme\": \"dark\"\n}\n",
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" }\n  }\n}\n",
        "{\"mcpServers\": {\"a\": {\"command\": \"a\"}}}",
        "",
    ] {
        machine.write(file, text);
        assert_eq!(
            machine.typed(&["add", "x", "https://e.test/mcp", "--to", "cursor"]).code,
            Some(0),
            "{text:?}"
        );
        let removed = machine.typed(&["rm", "x", "--from", "cursor"]);
        assert_eq!((removed.code, machine.read(file)), (Some(0), text.to_owned()), "{removed:?}");
    }
}

#[test]
fn a_host_of_programs_gets_a_bridge() {
    let machine = Machine::new("desktop");
    let refused = machine.typed(&["add", "docs", "https://e.test/mcp", "--to", "claude-desktop"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let next = "  try: pintle add docs --to claude-desktop -- pintle bridge https://e.test/mcp\n";
    assert!(refused.stderr.ends_with(next), "{}", refused.stderr);
}
