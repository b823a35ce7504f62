//! Logins: in a browser, by paste, with a device, as a client; used by every verb.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Stdio},
};

use pintle_oauth::testing::{Endpoint, Fault};
use serde_json::Value;

use crate::support::{
    machine::Machine,
    protected::{ProtectedServer, browse},
    run,
};

/// A login that waits for its user, and the address that it printed.
fn begin(machine: &Machine, words: &[&str]) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut command = machine.command();
    let piped = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = piped.spawn().unwrap();
    let mut reader = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    while !line.trim_start().starts_with("http://") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it ended without an address");
    }
    (process, reader, line.trim().to_owned())
}

fn finish(process: Child, mut stderr: BufReader<std::process::ChildStderr>) -> (Option<i32>, String, String) {
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let output = process.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), rest)
}

#[test]
fn a_login_in_a_browser_is_used_by_every_verb_until_the_logout() {
    let machine = Machine::new("login");
    let server = ProtectedServer::start();
    let url = server.url.as_str();
    let refused = machine.typed(&["call", url, "whoami"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.ends_with(&format!("  try: pintle login {url}\n")), "{}", refused.stderr);
    assert_eq!(machine.typed(&["whoami", url]).code, Some(3));

    let (process, stderr, page) = begin(&machine, &["login", url, "--no-browser"]);
    browse(&page, "");
    let (code, stdout, rest) = finish(process, stderr);
    assert_eq!(code, Some(0), "{rest}");
    assert!(stdout.starts_with(&format!("{url}\n  issuer   {}\n", server.login.issuer())), "{stdout}");

    let called = machine.typed(&["call", url, "whoami"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "alice\n"), "{called:?}");
    let listed = machine.typed(&["auth", "ls", "--json"]);
    let logins: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&logins["logins"][0]["url"], &logins["logins"][0]["loggedIn"]), (&url.into(), &true.into()));
    assert_eq!(machine.typed(&["whoami", url]).code, Some(0));
    // A second login does not ask.
    assert_eq!(machine.typed(&["login", url, "--no-browser"]).code, Some(0));
    // Tokens are in a file for their owner, and nowhere in what is printed.
    let stored = machine.read("home/.local/state/pintle/credentials.json");
    let token = server.login.issued().last().unwrap().clone();
    assert!(stored.contains(&token) && !listed.stdout.contains(&token));
    assert!(!machine.read("home/.local/state/pintle/logins.json").contains(&token));
    #[cfg(unix)]
    for file in ["credentials.json", "logins.json"] {
        use std::os::unix::fs::PermissionsExt as _;
        let path = machine.path(&format!("home/.local/state/pintle/{file}"));
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // A token of the options goes before it.
    let own = run(machine.command().args(["ping", url, "--token-env", "BAD"]).env("BAD", "x"));
    assert_eq!(own.code, Some(3), "{own:?}");
    assert!(own.stderr.ends_with("--token-env NAME\n"), "{}", own.stderr);

    server.login.log();
    let out = machine.typed(&["logout", url]);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("logged out\n", ""));
    assert_eq!(revocations(&server), 2);
    assert!(server.login.issued().is_empty());
    assert_eq!(machine.typed(&["logout", url]).stdout, "there was no login\n");
    assert_eq!(machine.typed(&["call", url, "whoami"]).code, Some(3));
    assert!(!machine.read("home/.local/state/pintle/credentials.json").contains(&token));
}

/// Returns how many tokens were revoked at the authorization server since it was last asked about.
fn revocations(server: &ProtectedServer) -> usize {
    server.login.log().iter().filter(|asked| asked.as_str().contains("/revoke")).count()
}

#[test]
fn a_logout_forgets_tokens_that_cannot_be_revoked() {
    let machine = Machine::new("logout");
    let server = ProtectedServer::start();
    let url = server.url.as_str();
    let stored = || machine.read("home/.local/state/pintle/credentials.json").contains("\"access\"");
    let log_in = || {
        server.login.fault_times(1, Fault::answer(Endpoint::Device, "interval", Value::from(1)));
        assert_eq!(machine.typed(&["login", url, "--device"]).code, Some(0));
    };
    log_in();
    server.login.log();
    let local = machine.typed(&["logout", url, "--local", "--json"]);
    assert_eq!((local.code, local.stderr.as_str()), (Some(0), ""), "{local:?}");
    assert!(local.stdout.contains(r#""loggedOut":true,"revoked":false"#), "{local:?}");
    assert!(revocations(&server) == 0 && !stored());
    for (fault, reason) in [
        (Fault::metadata("revocation_endpoint", serde_json::Value::Null), "does not offer to revoke tokens"),
        (Fault::Status(Endpoint::Revoke, 503), "returned status 503"),
        (Fault::CutOff(Endpoint::Metadata), "oauth-authorization-server"),
    ] {
        log_in();
        assert!(stored());
        server.login.fault(fault);
        let out = machine.typed(&["logout", url]);
        assert_eq!((out.code, out.stdout.as_str()), (Some(0), "logged out\n"), "{out:?}");
        let warning = "the tokens are removed here, but were not revoked: ";
        assert!(out.stderr.contains(warning) && out.stderr.contains(reason), "{out:?}");
        assert!(!stored());
        server.login.clear_faults();
    }
    // For programs, the reason is part of the result.
    log_in();
    server.login.fault(Fault::refused(Endpoint::Revoke, "invalid_client"));
    let out: Value = serde_json::from_str(&machine.typed(&["logout", url, "--json"]).stdout).unwrap();
    assert_eq!((&out["loggedOut"], &out["revoked"]), (&true.into(), &false.into()), "{out}");
    assert!(out["reason"].as_str().unwrap().contains("refused to revoke the refresh token"), "{out}");
}

#[test]
fn a_file_of_tokens_that_is_broken_is_named() {
    let machine = Machine::new("broken-tokens");
    let login = r#"{"logins":[{"url":"http://127.0.0.1:1/mcp","grant":"user","issuer":"i","resource":"r"}]}"#;
    machine.write("home/.local/state/pintle/logins.json", login);
    machine.write("home/.local/state/pintle/credentials.json", "{");
    for words in [&["auth", "ls"][..], &["logout", "http://127.0.0.1:1/mcp"]] {
        let printed = machine.typed(words);
        assert_eq!(printed.code, Some(1), "{printed:?}");
        let file = machine.path("home/.local/state/pintle/credentials.json");
        let file = file.display();
        let expected = format!(
            "pintle: the credentials in `{file}`: the file cannot be parsed; delete it and log in again\n  try: ls -l {file}\n"
        );
        assert_eq!(printed.stderr, expected);
    }
}

#[test]
fn a_login_that_was_revoked_is_not_asked_for_by_a_verb() {
    let machine = Machine::new("revoked");
    let server = ProtectedServer::start();
    let url = server.url.as_str();
    // The user pastes where the browser ended.
    let (mut process, stderr, page) = begin(&machine, &["login", url, "--paste"]);
    let end = browse(&page, "http://localhost/");
    writeln!(process.stdin.take().unwrap(), "{end}").unwrap();
    let (code, _, rest) = finish(process, stderr);
    assert_eq!(code, Some(0), "{rest}");
    assert_eq!(machine.typed(&["call", url, "whoami"]).stdout, "alice\n");
    server.login.revoke_access();
    server.login.revoke_refresh();
    // The token has expired, too.
    let store = "home/.local/state/pintle/credentials.json";
    let mut stored: Value = serde_json::from_str(&machine.read(store)).unwrap();
    for tokens in stored[server.login.issuer()]["tokens"].as_object_mut().unwrap().values_mut() {
        tokens["stale_at"] = 0.into();
    }
    machine.write(store, &stored.to_string());
    let revoked = machine.typed(&["call", url, "whoami"]);
    assert_eq!(revoked.code, Some(3), "{revoked:?}");
    assert!(revoked.stderr.contains("the login is no longer valid"), "{}", revoked.stderr);
    assert!(revoked.stderr.ends_with(&format!("  try: pintle login {url}\n")), "{}", revoked.stderr);
}

#[test]
fn a_device_and_a_client_log_in_without_a_browser() {
    let machine = Machine::new("device");
    let server = ProtectedServer::start();
    let url = server.url.as_str();
    let device = machine.typed(&["login", url, "--device", "--json"]);
    assert_eq!(device.code, Some(0), "{device:?}");
    assert!(device.stderr.contains(" and type "), "{}", device.stderr);
    assert_eq!(machine.typed(&["call", url, "whoami"]).stdout, "alice\n");
    assert_eq!(machine.typed(&["logout", url]).code, Some(0));

    let issuer = server.login.issuer();
    let words = [
        "login",
        url,
        "--client-credentials",
        "--client-id",
        "bot",
        "--client-secret-env",
        "SECRET",
        "--issuer",
        issuer,
    ];
    let unset = machine.typed(&words);
    assert_eq!(unset.code, Some(1), "{unset:?}");
    let login = run(machine.command().args(words).env("SECRET", "s3cret"));
    assert_eq!(login.code, Some(0), "{login:?}");
    for printed in [&login.stdout, &login.stderr, &machine.read("home/.local/state/pintle/logins.json")] {
        assert!(!printed.contains("s3cret"), "{printed}");
    }
    let called = run(machine.command().args(["call", url, "whoami"]).env("SECRET", "s3cret"));
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "bot\n"), "{called:?}");
    // Without the secret, as long as the token lasts.
    assert_eq!(machine.typed(&["call", url, "whoami"]).stdout, "bot\n");
}

#[test]
fn a_login_is_for_servers_at_a_url_that_ask_for_it() {
    let machine = Machine::new("nowhere");
    let demo = crate::support::HttpServing::demo();
    let open = machine.typed(&["login", &demo.url, "--no-browser"]);
    assert_eq!(
        (open.code, open.stdout.as_str()),
        (Some(0), "the server did not ask for a login\n"),
        "{open:?}"
    );
    let program = machine.typed(&["login", "demo"]);
    assert_eq!(program.code, Some(1), "{program:?}");
    assert!(program.stderr.contains("`login` is for servers at a URL"), "{}", program.stderr);
    let none = machine.typed(&["auth", "ls"]);
    assert!(none.code == Some(0) && none.stderr.contains("there are no logins"), "{none:?}");
}
