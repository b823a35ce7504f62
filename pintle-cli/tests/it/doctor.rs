//! Diagnoses of servers that work and of those that do not.

use serde_json::Value;

use crate::support::{
    HttpServing, Printed,
    free_address::free_address,
    protected::ProtectedServer,
    scripted_http::{serve, serve_with},
    typed,
};

/// The steps as `name: status`.
fn steps(printed: &Printed) -> Vec<String> {
    let report: Value = serde_json::from_str(&printed.stdout).unwrap_or_else(|_| panic!("{printed:?}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let steps = report["steps"].as_array().unwrap().iter();
    steps.map(|step| format!("{}: {}", text(&step["step"]), text(&step["status"]))).collect()
}

fn doctor(words: &[&str]) -> Printed {
    typed(&[&["doctor", "--json"], words].concat())
}

#[test]
fn a_server_that_works_passes_every_step() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let printed = doctor(&["--", program, "demo"]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let expected =
        ["program: ok", "environment: ok", "discover: ok", "initialize: ok", "stdout: ok", "lists: ok"];
    assert_eq!(steps(&printed), expected);
    let demo = HttpServing::demo();
    let printed = doctor(&[&demo.url]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert_eq!(
        steps(&printed),
        [
            "dns: ok",
            "tcp: ok",
            "http: ok",
            "origin: ok",
            "well-known: skipped",
            "auth: ok",
            "discover: ok",
            "initialize: ok",
            "lists: ok",
        ]
    );
    let text = typed(&["doctor", &demo.url]);
    assert!(
        text.stdout.contains("✓ origin      requests of foreign web pages are refused\n"),
        "{}",
        text.stdout
    );
    assert_eq!(steps(&doctor(&["demo"])), ["discover: ok", "initialize: ok", "lists: ok"]);
}

#[test]
fn the_address_of_the_oldest_transport_is_that_of_a_server() {
    let bridge = HttpServing::start(&["bridge", "--http", "127.0.0.1:0", "demo"]);
    let printed = doctor(&[&bridge.url.replace("/mcp", "/sse")]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let found = steps(&printed);
    assert_eq!(found[2..4], ["http: ok", "origin: skipped"], "{found:?}");
    assert!(found.contains(&"initialize: ok".to_owned()), "{found:?}");
}

#[test]
fn each_failure_has_something_to_do() {
    let closed = format!("http://{}/mcp", free_address());
    let page = format!("http://{}/mcp", serve("200 OK", "text/html", "<html></html>"));
    let missing = format!("http://{}/mcp", serve("404 Not Found", "text/html", "<html></html>"));
    let broken = format!("http://{}/mcp", serve("500 Internal Server Error", "text/plain", "out of cheese"));
    let plain = serve("200 OK", "text/html", "").replace("127.0.0.1", "https://127.0.0.1");
    let protected = ProtectedServer::start();
    for (words, failed, message) in [
        (&[closed.as_str()][..], "tcp", "start the server"),
        (&[page.as_str()], "http", "a page for browsers"),
        (&[missing.as_str()], "http", "the path is wrong"),
        (&[broken.as_str()], "http", "look at the server's log"),
        (&[plain.as_str()], "tls", "could not be reached"),
        (&["http://no-such-host.invalid/mcp"], "dns", "cannot be resolved"),
        (&[protected.url.as_str()], "auth", "requires a login"),
        (&["--", "no-such-program"], "program", "install it, or give its path"),
        (&["--cwd", "/no/such/folder", "--", "sh"], "directory", "there is no directory"),
        (&["--", "false"], "discover", "exited with status 1"),
    ] {
        let printed = doctor(words);
        assert_eq!(printed.code, Some(6), "{words:?}: {printed:?}");
        let report: Value = serde_json::from_str(&printed.stdout).unwrap();
        let step =
            report["steps"].as_array().unwrap().iter().find(|step| step["status"] == "failed").unwrap();
        assert_eq!(step["step"], failed, "{words:?}: {step}");
        assert!(step["message"].as_str().unwrap().contains(message), "{words:?}: {step}");
        assert!(!step["next"].as_str().unwrap().is_empty(), "{words:?}: {step}");
        assert!(printed.stderr.contains("step"), "{}", printed.stderr);
    }
    let printed = doctor(&[&protected.url]);
    let found = steps(&printed);
    assert!(
        found.contains(&"well-known: ok".to_owned()) && found.contains(&"issuer: ok".to_owned()),
        "{found:?}"
    );
    assert!(printed.stderr.contains(&format!("pintle login {}", protected.url)), "{}", printed.stderr);
}

/// What it has no room for is not what it does not have, whatever its texts say.
#[test]
fn a_server_without_room_for_a_session_fails_and_one_without_sessions_does_not() {
    for (status, reason, code, expected) in [
        ("503 Service Unavailable", "the limit of sessions is reached", 6, "initialize: failed"),
        ("429 Too Many Requests", "come back later", 6, "initialize: failed"),
        ("400 Bad Request", "no sessions here: status 503 is for others", 0, "initialize: warning"),
    ] {
        let address = serve_with(move |request| {
            let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
                return ("405 Method Not Allowed", "text/plain", String::new());
            };
            match message["method"].as_str() {
                Some("server/discover") => {
                    let result = serde_json::json!({
                        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0,
                        "cacheScope": "public",
                    });
                    let answer = serde_json::json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    ("200 OK", "application/json", answer.to_string())
                }
                _ => (status, "text/plain", reason.to_owned()),
            }
        });
        let printed = doctor(&[&format!("http://{address}/mcp")]);
        let found = steps(&printed);
        assert!(found.contains(&expected.to_owned()), "{status}: {printed:?}");
        assert_eq!(printed.code, Some(code), "{status}: {printed:?}");
        assert!(printed.stdout.contains(reason), "{status}: {}", printed.stdout);
    }
}

#[cfg(unix)]
#[test]
fn bad_manners_of_a_program_are_warnings() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let noisy = format!("echo 'Hello!'; exec {program} demo");
    let printed = doctor(&["--", "sh", "-c", &noisy]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(steps(&printed).contains(&"stdout: warning".to_owned()), "{printed:?}");
    assert!(printed.stdout.contains("Hello!"), "{}", printed.stdout);
    // It ends when it is asked for what it does not know.
    let touchy = format!(
        "read line; case \"$line\" in *discover*) exit 1;; esac; {{ printf '%s\\n' \"$line\"; cat; }} | {program} demo"
    );
    let printed = doctor(&["--", "sh", "-c", &touchy]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let found = steps(&printed);
    assert!(
        found.contains(&"discover: warning".to_owned()) && found.contains(&"initialize: ok".to_owned()),
        "{found:?}"
    );
    assert!(printed.stdout.contains("newer clients start it twice"), "{}", printed.stdout);
}

#[test]
fn the_demo_passes_every_check() {
    for words in [&["lint", "demo", "--strict"][..], &["doctor", "demo"]] {
        let printed = typed(words);
        assert_eq!(printed.code, Some(0), "{printed:?}");
        assert!(!printed.stdout.contains('!') && !printed.stdout.contains("warning"), "{}", printed.stdout);
    }
}
