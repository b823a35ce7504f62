//! Servers by the names that hosts have configured.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::support::{Printed, pintle, run};

/// A home directory and a project, removed at the end.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pintle-cli-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("home/.cursor")).unwrap();
        fs::create_dir_all(folder.join("project")).unwrap();
        let demo = json!({"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"]});
        let cursor = json!({"mcpServers": {
            "harbour": demo,
            "secret": {"url": "http://127.0.0.1:1/mcp?key=s3cret", "headers": {"Authorization": "Bearer ${PINTLE_TEST_TOKEN}"}},
            "broken": {"args": []},
        }});
        fs::write(folder.join("home/.cursor/mcp.json"), cursor.to_string()).unwrap();
        fs::write(folder.join("project/.mcp.json"), json!({"mcpServers": {"local": demo}}).to_string())
            .unwrap();
        Self(folder)
    }

    fn typed(&self, words: &[&str]) -> Printed {
        let mut command = pintle();
        command.args(words).current_dir(self.0.join("project")).env("HOME", self.0.join("home"));
        run(command.env_remove("XDG_CONFIG_HOME").env("USERPROFILE", self.0.join("home")))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

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
fn a_file_of_the_project_is_used_only_if_it_is_named() {
    let machine = Machine::new("project");
    let refused = machine.typed(&["ping", "local"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is not used by its name"), "{}", refused.stderr);
    let next = refused.stderr.lines().last().unwrap().strip_prefix("  try: pintle ").unwrap();
    let words: Vec<_> = next.split(' ').collect();
    assert_eq!(machine.typed(&words).code, Some(0));
    assert_eq!(machine.typed(&["ping", ".mcp.json:local"]).code, Some(0));
    let which = machine.typed(&["ping", ".mcp.json"]);
    assert!(which.stderr.contains("there are `local`"), "{}", which.stderr);
    let none = machine.typed(&["ping", ".mcp.json:lcoal"]);
    assert!(none.stderr.ends_with("  try: pintle info .mcp.json:local\n"), "{}", none.stderr);
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
    fs::write(machine.0.join("home/.claude.json"), "{ \"mcpServers\": ").unwrap();
    let unread = machine.typed(&["ls", "elsewhere"]);
    assert!(unread.code == Some(1) && unread.stderr.contains(".claude.json`"), "{unread:?}");
    let near = machine.typed(&["ls", "harbuor"]);
    assert!(near.stderr.ends_with("  try: pintle info harbour\n"), "{}", near.stderr);
    let mut command = pintle();
    command
        .args(["ls", "secret", "-v"])
        .env("HOME", machine.0.join("home"))
        .env("PINTLE_TEST_TOKEN", "t0ken");
    let closed = run(command.env_remove("XDG_CONFIG_HOME").env("USERPROFILE", machine.0.join("home")));
    assert_eq!(closed.code, Some(4), "{closed:?}");
    for secret in ["t0ken", "s3cret"] {
        assert!(!closed.stderr.contains(secret), "{}", closed.stderr);
    }
}
