//! Who may use a gateway with the rights of its owner, and who sees the names of its targets.

use crate::support::{HttpServing, machine::Machine, pintle, run};

use super::page;

/// An address of this machine, as a system of two kinds of addresses writes it.
const MAPPED: &str = "[::ffff:127.0.0.1]:0";

#[test]
fn the_rights_of_the_owner_are_not_for_everybody() {
    let machine = Machine::new("gateway-rights");
    let program = env!("CARGO_BIN_EXE_pintle").replace('\\', "\\\\");
    let url = "url = \"http://127.0.0.1:1/mcp\"";
    let secret = "{ env = \"PINTLE_TEST_TOKEN\" }";
    for (target, rights) in [
        (format!("{url}\nheaders = {{ X-Key = {secret} }}"), "its headers"),
        (format!("{url}\nheaders = {{ X-Team = \"blue\" }}"), "its headers"),
        (format!("command = [\"{program}\", \"demo\"]\nenv = {{ KEY = {secret} }}"), "its variables"),
        ("server = \"secret\"".to_owned(), "the headers or variables of its configuration"),
        (format!("{url}\nlogin = true"), "your login"),
    ] {
        machine.write("project/team.toml", &format!("[targets.git]\n{target}\n"));
        let public =
            ["team.toml", "--http", "0.0.0.0:0", "--insecure-no-auth", "--allow-host", "box.example"];
        let mut command = machine.command();
        command.arg("gateway").args(public).env("PINTLE_TEST_TOKEN", "s3cret");
        let refused = run(&mut command);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let expected = format!("anybody could use `git` with {rights}: leave out `--insecure-no-auth`");
        assert!(refused.stderr.contains(&expected), "{refused:?}");
        assert!(refused.stdout.is_empty() && !refused.stderr.contains("s3cret"), "{refused:?}");
    }
}

#[test]
fn an_address_of_this_machine_is_one_however_it_is_written() {
    let machine = Machine::new("gateway-mapped");
    machine.write("team.toml", "[targets.one]\nserver = \"demo\"\n");
    let file = machine.path("team.toml");
    let file = file.to_str().unwrap();
    for words in [&["gateway", file, "--http", MAPPED][..], &["bridge", "demo", "--http", MAPPED]] {
        let mut command = pintle();
        command.args(words);
        // Without a token.
        let serving = HttpServing::of(command);
        let answered = page(&serving, "/mcp", "");
        assert!(answered.starts_with("HTTP/1.1 400"), "neither 401 nor 403, {words:?}: {answered}");
    }
}
