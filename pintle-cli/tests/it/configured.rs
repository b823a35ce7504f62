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
