//! Servers by the names that hosts have configured.

use serde_json::json;

use crate::support::{machine::Machine, run};

#[test]
fn a_name_of_a_host_is_a_target() {
    let machine = Machine::new("names");
    let printed = machine.typed(&["call", "harbour", "tide", "port=bergen", "hour=4", "-v"]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (Some(0), "{\"metres\":0.6,\"rising\":true}\n"),
        "{printed:?}"
    );
    assert!(printed.stderr.contains("target: the server `harbour` of "), "{}", printed.stderr);
    // With what to type next.
    let printed = machine.typed(&["call", "harbour", "tdie"]);
    assert!(printed.stderr.ends_with("  try: pintle call harbour tide --help\n"), "{}", printed.stderr);
    // Options of programs are its options.
    assert_eq!(machine.typed(&["ping", "harbour", "--env", "X=1"]).code, Some(0));
    assert_eq!(machine.typed(&["ping", "harbour", "--token-env", "HOME"]).code, Some(1));
}

#[test]
fn an_entry_of_a_file_is_a_target() {
    let machine = Machine::new("entries");
    let which = machine.typed(&["ping", ".mcp.json"]);
    assert!(which.stderr.contains("there are `local`"), "{}", which.stderr);
    let none = machine.typed(&["ping", ".mcp.json:lcoal"]);
    assert!(none.stderr.ends_with("  try: pintle info .mcp.json:local\n"), "{}", none.stderr);
    // The user's own file needs no approval, also by its path.
    assert_eq!(machine.typed(&["ping", "../home/.cursor/mcp.json:harbour"]).code, Some(0));
}

#[test]
fn tools_that_an_entry_excludes_are_neither_listed_nor_called() {
    let machine = Machine::new("filter");
    let demo = json!({"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"], "disabledTools": ["tide"]});
    machine.write("home/.claude.json", &json!({"mcpServers": {"limited": demo}}).to_string());
    let listed = machine.typed(&["ls", "limited", "--pick", ".tools[].name"]);
    let all = machine.typed(&["ls", "harbour", "--pick", ".tools[].name"]);
    assert_eq!(listed.stdout, all.stdout.replace("tide\n", ""), "{listed:?}");
    assert_ne!(listed.stdout, all.stdout);
    let refused = machine.typed(&["call", "limited", "tide", "port=bergen", "hour=4"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("does not allow its tool `tide`"), "{}", refused.stderr);
}

#[test]
fn what_cannot_be_used_is_explained_without_secrets() {
    let machine = Machine::new("broken");
    let unset = machine.typed(&["ls", "secret"]);
    assert_eq!(unset.code, Some(1), "{unset:?}");
    assert!(unset.stderr.contains("the variable `PINTLE_TEST_TOKEN` is not set"), "{}", unset.stderr);
    assert!(unset.stderr.ends_with("  try: export PINTLE_TEST_TOKEN=…\n"), "{}", unset.stderr);
    let broken = machine.typed(&["ls", "broken"]);
    assert!(broken.code == Some(1) && broken.stderr.contains("server `broken`"), "{broken:?}");
    machine.write("home/.claude.json", "{ \"mcpServers\": ");
    let unread = machine.typed(&["ls", "elsewhere"]);
    assert!(unread.code == Some(1) && unread.stderr.contains(".claude.json`"), "{unread:?}");
    let near = machine.typed(&["ls", "harbuor"]);
    assert!(near.stderr.ends_with("  try: pintle info harbour\n"), "{}", near.stderr);
    let closed = run(machine.command().args(["ls", "secret", "-v"]).env("PINTLE_TEST_TOKEN", "t0ken"));
    assert_eq!(closed.code, Some(4), "{closed:?}");
    for secret in ["t0ken", "s3cret"] {
        assert!(!closed.stderr.contains(secret), "{}", closed.stderr);
    }
}

#[test]
fn a_configured_name_comes_before_a_host() {
    let machine = Machine::new("dotted");
    let demo = json!({"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"]});
    let own = json!({"mcpServers": {"my.server": demo, "io.github.x/y": demo, "twice": demo}});
    machine.write("home/.cursor/mcp.json", &own.to_string());
    let other = json!({"mcpServers": {"my.server": demo, "twice": {"url": "http://127.0.0.1:1/mcp"}}});
    machine.write("home/.claude.json", &other.to_string());
    for name in ["my.server", "io.github.x/y"] {
        let printed = machine.typed(&["ping", name]);
        assert_eq!(printed.code, Some(0), "{printed:?}");
    }
    // Two servers have the name.
    let printed = machine.typed(&["ping", "twice"]);
    assert_eq!(printed.code, Some(1), "{printed:?}");
    assert!(
        printed.stderr.contains("which `twice`? 2 files of hosts mean different servers"),
        "{}",
        printed.stderr
    );
    let file = machine.path("home/.cursor/mcp.json");
    assert_eq!(machine.typed(&["ping", &format!("{}:twice", file.display())]).code, Some(0));
    // A project does not decide what a host is.
    machine.write("project/.mcp.json", &json!({"mcpServers": {"localhost:1": demo}}).to_string());
    assert_eq!(machine.typed(&["ping", "localhost:1"]).code, Some(4));
}

#[test]
fn inputs_of_an_entry_are_given() {
    let machine = Machine::new("inputs");
    let program = env!("CARGO_BIN_EXE_pintle");
    let file = json!({
        "inputs": [{"id": "what", "type": "promptString", "description": "What to run"}],
        "servers": {"asked": {"command": program, "args": ["${input:what}"]}},
    });
    machine.write("home/.config/Code/User/mcp.json", &file.to_string());
    let missing = machine.typed(&["ping", "asked"]);
    assert_eq!(missing.code, Some(7), "{missing:?}");
    assert!(missing.stderr.ends_with("  try: pintle info asked --input what=…\n"), "{}", missing.stderr);
    assert_eq!(machine.typed(&["ping", "asked", "--input", "what=demo"]).code, Some(0));
    assert_eq!(machine.typed(&["ping", "demo", "--input", "what=demo"]).code, Some(1));
}
