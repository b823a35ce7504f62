//! Completion in the shells themselves, where they are installed: `cargo xtask test` lists those that are not.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::support::{machine::Machine, pty::TerminalSession};

/// What is typed, and the words that the shell has in its line then.
const LINES: &[(&str, &str)] = &[
    ("pintle cal\thar\tti\tpo\tber\t", "[call][harbour][tide][port=bergen]"),
    ("true && NAME=x pintle call harbour ti\thour=4 \tb\t", "[call][harbour][tide][hour=4][port=bergen]"),
    ("pintle ls --er\tstatel\t", "[ls][--era][stateless]"),
    // A server that was never listed, of whose tools nothing is known.
    ("pintle call team:d\tti\t", "[call][team:docs][ti]"),
];

/// A user whose servers leave a line in a file whenever one of them is started.
struct User {
    machine: Machine,
    shell: &'static str,
}

impl User {
    /// Returns `None` if the shell is not installed.
    fn new(shell: &'static str) -> Option<Self> {
        let version =
            Command::new(shell).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            return None;
        }
        let machine = Machine::new(&format!("shell-{shell}"));
        let script = format!("echo started >> {}; exec pintle demo", machine.path("starts").display());
        let server = json!({"command": "sh", "args": ["-c", script]});
        let servers = json!({"mcpServers": {"harbour": server, "team:docs": server}});
        machine.write("home/.cursor/mcp.json", &servers.to_string());
        fs::remove_file(machine.path("project/.mcp.json")).unwrap();
        Some(Self { machine, shell })
    }

    /// Returns a command in the environment of the user, whose `PATH` has the command under test.
    fn command(&self, program: &str) -> Command {
        let own = self.machine.command();
        let mut command = Command::new(program);
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let folder = Path::new(env!("CARGO_BIN_EXE_pintle")).parent().unwrap().to_owned();
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([folder].into_iter().chain(env::split_paths(&path))).unwrap();
        command.env("PATH", path).env("TERM", "dumb").env("PINTLE_CACHE_DIR", self.machine.path("cache"));
        command.current_dir(self.machine.path("project"));
        command
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.machine.path("starts")).map_or(0, |text| text.lines().count())
    }

    /// Lists the tools of one server, so that they are stored.
    fn list(&self) {
        let listed = self.command("pintle").args(["ls", "harbour"]).output().unwrap();
        assert!(listed.status.success(), "{listed:?}");
        assert_eq!(self.starts(), 1);
    }

    /// Types the lines at the shell, in which `pintle` prints its words, and checks that no server was started.
    fn type_lines(&self, options: &[&str], setup: &str) {
        self.list();
        let mut command = self.command(self.shell);
        command.args(options).env("PS1", "=> ").env("PS2", "");
        let mut session = TerminalSession::start(&command, 200);
        session.expect("=> ");
        session.type_text(&format!("{setup}\r"));
        for (typed, words) in LINES {
            session.expect("=> ");
            session.type_text(&format!("{typed}\r"));
            session.expect(words);
        }
        session.expect("=> ");
        session.type_text("exit\r");
        session.finish();
        assert_eq!(self.starts(), 1, "completion started a server");
    }
}

/// What makes `pintle` print its words, except where the script for completion calls it.
const PRINT_WORDS: &str = "pintle() { if [ \"$1\" = __complete ]; then command pintle \"$@\"; else printf '[%s]' \"$@\"; echo; fi; }";

#[test]
fn bash_completes_without_starting_a_server() {
    let Some(user) = User::new("bash") else { return };
    user.type_lines(
        &["--norc", "--noprofile", "-i"],
        &format!("source <(pintle completions bash); {PRINT_WORDS}"),
    );
}

#[test]
fn zsh_completes_without_starting_a_server() {
    let Some(user) = User::new("zsh") else { return };
    user.type_lines(
        &["-f", "-i"],
        &format!("autoload -U compinit; compinit -D -u; source <(pintle completions zsh); {PRINT_WORDS}"),
    );
}

#[test]
fn fish_completes_without_starting_a_server() {
    let Some(user) = User::new("fish") else { return };
    user.list();
    for (line, expected) in [
        ("pintle cal", "call\n"),
        ("pintle call har", "harbour\n"),
        ("pintle call harbour ti", "tide\n"),
        ("pintle call harbour tide ", "hour=\nport=\n"),
        ("pintle call harbour tide hour=4 po", "port=\n"),
        ("pintle call harbour tide port=b", "port=bergen\n"),
        ("pintle ls --era statel", "stateless\n"),
        ("pintle call team:d", "team:docs\n"),
        ("pintle call team:docs ti", ""),
    ] {
        let script = format!("pintle completions fish | source; complete -C '{line}'");
        let printed = user.command("fish").args(["--no-config", "-c", &script]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert_eq!((text(printed.stdout).as_str(), text(printed.stderr).as_str()), (expected, ""), "{line}");
    }
    assert_eq!(user.starts(), 1, "completion started a server");
}
