//! A hostile server and a terminal: nothing that the server sends reaches the terminal as it is.

use serde_json::json;

use crate::support::{
    hostile_login,
    hostile_server::{self, HOSTILE},
    machine::Machine,
    pintle,
    pty::{run_in_terminal, type_in_terminal},
    run, state_directory, words,
};

/// What is typed, and the exit code; `TARGET` stands for the server.
const LINES: &[(&str, i32)] = &[
    ("info TARGET", 0),
    ("info TARGET --json", 0),
    ("info TARGET --pick .instructions", 0),
    ("ls TARGET", 0),
    ("ls TARGET --schema", 0),
    ("ls TARGET --json", 0),
    ("ls TARGET --pick .tools[].name", 0),
    ("ls TARGET --pick .tools[0].inputSchema", 0),
    ("ls TARGET --pick .tools[0].nothing", 1),
    ("call TARGET plain -v", 0),
    ("call TARGET plain", 0),
    ("call TARGET plain --json", 0),
    ("call TARGET plain --help", 0),
    ("call TARGET plan", 1),
    ("call TARGET x", 1),
    ("call TARGET plain other=1", 0),
    ("call TARGET plain city=1", 1),
    ("call TARGET fails", 5),
    ("call TARGET refuses", 2),
    ("call TARGET refuses --json", 2),
    ("call TARGET asks", 7),
    ("call TARGET asks --json", 7),
    ("call TARGET form", 7),
    ("call TARGET form --json", 7),
    ("call TARGET form --answer choice=x", 1),
    ("call TARGET page", 7),
    ("read TARGET x:y", 0),
    ("read TARGET x:y --json", 0),
    ("prompt TARGET p", 0),
    ("prompt TARGET p --text", 0),
    ("complete TARGET p a=", 0),
    ("raw TARGET tools/list", 0),
    ("raw TARGET no/such/method", 2),
    ("ping TARGET -v", 0),
    ("lint TARGET --strict", 6),
    ("lint TARGET --sarif", 6),
    ("lint TARGET --json", 6),
    ("doctor TARGET", 0),
    ("doctor TARGET --json", 0),
    ("trace TARGET -- call plain", 0),
    ("trace TARGET -- call refuses", 2),
    ("trace TARGET --json -- call plain --json", 0),
    ("bench TARGET fails -n 1", 5),
    ("bench TARGET refuses -n 1", 2),
    ("bench TARGET plain -n 2 -v", 0),
    ("watch TARGET x:HOSTILE --count 1", 0),
    ("watch TARGET x:HOSTILE --count 1 --json", 0),
    ("lock TARGET --as x --file FILE", 0),
    ("lock TARGET --as xHOSTILE --file FILE", 0),
    ("diff demo TARGET", 6),
    ("diff TARGET demo --json", 6),
    ("login TARGET --no-browser", 0),
];

#[test]
fn nothing_hostile_reaches_the_terminal() {
    let url = hostile_server::start();
    let file = state_directory().join("hostile.lock").to_string_lossy().into_owned();
    std::fs::create_dir_all(state_directory()).unwrap();
    for (line, expected) in LINES {
        let line = line.replace("FILE", &file);
        let words = words(&line.replace("TARGET", &url).replace("HOSTILE", HOSTILE));
        let (code, shown) = run_in_terminal(pintle().args(&words).env("NO_COLOR", "1"), 80);
        assert_eq!(code, Some(*expected), "{line}: {shown}");
        assert_harmless(&line, &shown);
        // Each of them shows something of the server, except those that have no reason to.
        let shows = shown.contains("\\u{202e}") || shown.contains("\\u202e");
        let own = [
            "call TARGET plan",
            "call TARGET x",
            "ls TARGET --pick .tools[0].nothing",
            "ping TARGET -v",
            "bench TARGET plain -n 2 -v",
        ];
        let is_own =
            own.contains(&&*line) || line.starts_with("lock TARGET --as x ") || line.starts_with("login ");
        assert!(shows || is_own, "{line}: {shown}");
    }
}

/// Lines with hostile files, and servers that are served on: what is typed, the exit code, and whether a text of the attacker is shown.
const FILE_LINES: &[(&str, i32, bool)] = &[
    ("servers", 0, true),
    ("servers --check", 6, true),
    ("servers --check --json", 6, true),
    ("add new https://e.test/mcp --to cursor --dry-run", 0, true),
    ("add xHOSTILE https://e.test/mcp --to cursor", 1, false),
    ("add new https://e.test/mcp --to cursor", 0, false),
    ("rm new --from cursor --dry-run", 0, true),
    ("rm new --from cursor", 0, false),
    ("rm xHOSTILE --from cursor", 1, true),
    ("add new x --to claude-code", 1, false),
    ("resume nothingHOSTILE", 1, true),
    ("gateway GATEWAY --check --connect", 0, true),
    ("gateway GATEWAY --check --connect --json", 0, false),
];

#[test]
fn nothing_hostile_of_files_reaches_the_terminal() {
    let url = hostile_server::start();
    let machine = Machine::new("hostile-files");
    let name = format!("n{HOSTILE}");
    let server = json!({"command": format!("no{HOSTILE}"), "args": [HOSTILE], "env": {HOSTILE: HOSTILE}});
    let file = json!({"mcpServers": {&name: server, "reached": {"url": url}, "odd": {"args": [HOSTILE]}}});
    machine.write("home/.cursor/mcp.json", &serde_json::to_string_pretty(&file).unwrap());
    machine.write("gateway.toml", &format!("[targets.hostile]\nurl = \"{url}\"\n"));
    let mut wrong = Vec::new();
    for (line, expected, shows) in FILE_LINES {
        let gateway = machine.path("gateway.toml").to_string_lossy().into_owned();
        let typed = words(&line.replace("GATEWAY", &gateway).replace("HOSTILE", HOSTILE));
        let (code, shown) = run_in_terminal(machine.command().args(typed).env("NO_COLOR", "1"), 80);
        assert_harmless(line, &shown);
        let found = (code, shown.contains("\\u{202e}") || shown.contains("\\u202e"));
        if found != (Some(*expected), *shows) {
            wrong.push(format!("{line}: {found:?}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What a bridge and a gateway pass on is for a host, and not for a terminal.
    for verb in [format!("bridge {url} -v"), format!("gateway {}", machine.path("gateway.toml").display())] {
        let mut command = machine.command();
        let (code, shown) = run_in_terminal(command.args(words(&verb)).env("NO_COLOR", "1"), 80);
        assert_eq!(code, Some(1), "{verb}: {shown}");
        assert_harmless(&verb, &shown);
        assert!(shown.contains("standard output is a terminal"), "{verb}: {shown}");
    }
}

/// Lines for servers with a login: the attack, what is typed, the exit code, and whether a text of the attacker is shown.
const LOGIN_LINES: &[(&str, &str, i32, bool)] = &[
    ("any", "ls TARGET", 3, true),
    ("any", "doctor TARGET", 6, true),
    ("any", "doctor TARGET --json", 6, true),
    ("any", "trace -- ls TARGET", 3, true),
    // An issuer that is not an address, and one whose metadata are those of another.
    ("issuer", "login TARGET --no-browser", 3, true),
    ("other", "login TARGET --no-browser", 3, true),
    ("page", "login TARGET --no-browser", 3, false),
    ("register", "login TARGET --no-browser", 3, true),
    ("register", "login TARGET --no-browser --json", 3, true),
    // The code of a device, and the reason for which it was denied.
    ("any", "login TARGET --device", 3, true),
    (
        "any",
        "login TARGET --client-credentials --client-id x --issuer ISSUER --client-secret-env SECRET",
        3,
        true,
    ),
    // What was stored by a login.
    ("any", "auth ls", 0, true),
    ("any", "auth ls --json", 0, true),
    ("any", "whoami TARGET", 3, false),
    ("any", "logout TARGET", 0, true),
];

#[test]
fn nothing_of_a_hostile_authorization_server_reaches_the_terminal() {
    let origin = hostile_login::start();
    let machine = Machine::new("hostile-login");
    let url = format!("{origin}/any/mcp");
    let mut wrong = Vec::new();
    for (kind, line, expected, shows) in LOGIN_LINES {
        let issuer = format!("{origin}/any");
        let tokens = json!({"access": "a", "refresh": "r", "client_id": format!("c{HOSTILE}"), "requested": [HOSTILE]});
        if ["auth ls", "auth ls --json", "whoami TARGET", "logout TARGET"].contains(line) {
            let stored = json!({&issuer: {"tokens": {&url: tokens}}});
            let login = json!({"url": url, "grant": "user", "issuer": issuer, "resource": url});
            machine.write("home/.local/state/pintle/credentials.json", &stored.to_string());
            machine.write("home/.local/state/pintle/logins.json", &json!({"logins": [login]}).to_string());
        }
        let line = line.replace("TARGET", &format!("{origin}/{kind}/mcp")).replace("ISSUER", &issuer);
        let mut command = machine.command();
        let command = command.args(words(&line)).env("NO_COLOR", "1").env("SECRET", "s3cret");
        let (code, shown) = run_in_terminal(command, 80);
        assert_harmless(&line, &shown);
        let found = (code, shown.contains("\\u{202e}") || shown.contains("\\u202e"));
        if found != (Some(*expected), *shows) {
            wrong.push(format!("{line}: {found:?}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn colours_are_the_only_escapes() {
    let url = hostile_server::start();
    let (_, shown) = run_in_terminal(pintle().args(["ls", &url]).env("TERM", "xterm"), 80);
    let parts: Vec<_> = shown.split("\u{1b}[").skip(1).collect();
    assert!(parts.len() > 10, "{shown}");
    for part in parts {
        let code = part.split('m').next().unwrap();
        assert!(["0", "1", "2", "1;36"].contains(&code), "{part}");
    }
}

#[test]
fn the_standard_error_of_a_program_is_the_servers_too() {
    let script = format!("printf '%s' '{HOSTILE}' >&2; exit 3");
    for options in [&["ls"][..], &["ls", "-v"], &["ls", "--json"]] {
        let (code, shown) = run_in_terminal(
            pintle().args(options).args(["--", "sh", "-c", &script]).env("NO_COLOR", "1"),
            80,
        );
        assert_eq!(code, Some(4), "{shown}");
        assert_harmless("stderr", &shown);
    }
}

#[test]
fn a_tap_and_a_replay_at_a_terminal_are_harmless_too() {
    let message = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{{\"a\":\"{HOSTILE}\"}}}}");
    let script = format!("printf '%s\\n' '{HOSTILE}' >&2; printf '%s\\n' '{message}'; exit 3");
    for options in [&["tap"][..], &["tap", "--json"]] {
        let (code, shown) = run_in_terminal(
            pintle().args(options).args(["--", "sh", "-c", &script]).env("NO_COLOR", "1"),
            80,
        );
        assert_eq!(code, Some(3), "{shown}");
        assert_harmless("tap", &shown);
        assert!(shown.contains("\\u{202e}"), "{shown}");
    }
    let path = crate::traffic::fresh_file("hostile.jsonl");
    let escaped = serde_json::to_string(HOSTILE).unwrap();
    let lines = [
        r#"{"recording":{"version":1}}"#.to_owned(),
        r#"{"direction":"out","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#.to_owned(),
        format!(r#"{{"direction":"in","message":{{"jsonrpc":"2.0","id":1,"result":{{"a":{escaped}}}}}}}"#),
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let typed = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\u{4}";
    let (code, shown) = type_in_terminal(pintle().arg("replay").arg(&path).env("NO_COLOR", "1"), 80, typed);
    assert_eq!(code, Some(0), "{shown}");
    // The terminal echoes the end of input as `^D` and two backspaces.
    assert_harmless("replay", &shown.replace("^D\u{8}\u{8}", ""));
    assert!(shown.contains("\\u{202e}"), "{shown}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_pipe_gets_what_the_server_sent_and_so_does_a_terminal_with_raw() {
    let url = hostile_server::start();
    let piped = run(pintle().args(["read", &url, "x:y"]));
    assert_eq!(piped.stdout, format!("{HOSTILE}\n"));
    let (_, shown) = run_in_terminal(pintle().args(["read", &url, "x:y", "--raw"]), 80);
    assert_eq!(shown, format!("{HOSTILE}\n"));
    // Standard error is for people, wherever it leads to.
    assert_harmless("stderr", &run(pintle().args(["call", &url, "refuses"])).stderr);
    // JSON keeps its value in either case.
    let json = run(pintle().args(["read", &url, "x:y", "--json"])).stdout;
    assert_harmless("json", &json);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["contents"][0]["text"], HOSTILE);
}

#[test]
fn progress_is_one_line_that_is_removed() {
    let (code, shown) =
        run_in_terminal(pintle().args(["call", "demo", "sail", "to=bergen"]).env("NO_COLOR", "1"), 42);
    let mut lines: Vec<_> = shown.split("\r\u{1b}[2K").collect();
    assert_eq!((code, lines.pop()), (Some(0), Some("Arrived at Bergen.\n")));
    assert_eq!(
        lines,
        [
            "",
            "██████░░░░░░░░░░░░░░ 1/3 out of the harb…",
            "█████████████░░░░░░░ 2/3 on the open sea",
            "████████████████████ 3/3 land in sight"
        ]
    );
}

#[test]
fn lines_fit_a_narrow_terminal() {
    let (_, shown) = run_in_terminal(pintle().args(["ls", "demo"]).env("NO_COLOR", "1"), 40);
    let described = shown.lines().filter(|line| line.starts_with("      "));
    assert!(described.clone().any(|line| line.ends_with('…')), "{shown}");
    assert!(described.map(|line| line.chars().count()).all(|width| width <= 40), "{shown}");
}

/// Fails if a text has a character that is not for people. The line of progress is cleared by the command itself.
pub(crate) fn assert_harmless(what: &str, shown: &str) {
    let cleared = shown.replace("\r\u{1b}[2K", "");
    let hazards = ['\u{9b}', '\u{202e}', '\u{200b}', '\u{e0041}'];
    let found =
        cleared.chars().find(|letter| letter.is_control() && *letter != '\n' || hazards.contains(letter));
    assert_eq!(found, None, "{what}: {shown:?}");
    assert!(!cleared.is_empty(), "{what}");
}

#[test]
fn a_list_that_the_server_does_not_know_is_left_out() {
    let url = hostile_server::start().replace("/mcp", "/partial");
    let all = run(pintle().args(["ls", &url, "--json"]));
    assert_eq!(all.code, Some(0), "{all:?}");
    let lists: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(lists.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools", "prompts", "resources"]);
    // Who asks for it learns why.
    let asked = run(pintle().args(["ls", &url, "templates"]));
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(2), ""), "{asked:?}");
}
