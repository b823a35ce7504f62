//! The log of the command, on standard error.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    gateway::page_at,
    support::{HttpServing, PATIENCE, free_address::free_address, machine::Machine, pintle},
};

const DEAD: &str = "[targets.dead]\ncommand = [\"/no/such/program\"]\n";

fn gateway(machine: &Machine, file: &str, words: &[&str]) -> HttpServing {
    machine.write("team.toml", file);
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0"]).args(words);
    HttpServing::of({
        command.current_dir(machine.path(""));
        command
    })
}

#[tokio::test]
async fn the_life_of_a_gateway_is_logged_as_text_or_as_json() {
    let machine = Machine::new("gateway-service-log");
    let text = gateway(&machine, &format!("{DEAD}[targets.one]\nserver = \"demo\"\n"), &[]);
    for line in [
        " INFO pintle::service: `dead` cannot be connected: ",
        " INFO pintle::service: `one` is connected",
        " INFO pintle::service: serving at 127.0.0.1:",
        "with 2 targets: `dead`, `one`",
    ] {
        text.printed(line).await;
    }
    machine.write("team.toml", "[targets.one]\nserver = \"demo\"\nhide = [\"berth\"]\n");
    text.printed("`team.toml` has changed, and is in use now: `dead` is removed, `one` is another").await;
    let json = gateway(&machine, DEAD, &["--log-format", "json"]);
    let line = json.printed("cannot be connected").await;
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["level"], &line["target"]), (&"INFO".into(), &"pintle::service".into()));
    assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    assert!(line["message"].as_str().unwrap().starts_with("`dead` cannot be connected: "), "{line}");
}

#[cfg(unix)]
#[tokio::test]
async fn warnings_of_the_libraries_are_logged_without_tokens_and_a_filter_chooses() {
    let machine = Machine::new("gateway-library-log");
    let issuer = format!("http://{}", free_address());
    let auth = format!(
        "[auth]\nissuer = \"{issuer}\"\nurl = \"http://127.0.0.1:1\"\njwks_url = \"{issuer}/keys\"\n{DEAD}"
    );
    let part = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let claims =
        json!({"iss": issuer, "aud": "http://127.0.0.1:1/mcp", "sub": "ann", "exp": 4_102_444_800_u64});
    let token = &format!("{}.{}.c2lnbmF0dXJl", part(json!({"alg": "RS256", "kid": "a"})), part(claims));
    for (filter, is_logged) in [("warn", true), ("pintle_oauth=off,warn", false)] {
        let mut gateway = gateway(&machine, &auth, &["--log", filter]);
        let address = gateway.url.strip_prefix("http://").unwrap().trim_end_matches("/mcp").to_owned();
        let refused = page_at(&address, "/ready", token);
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        if is_logged {
            let line = gateway.printed(" WARN pintle_oauth::").await;
            assert!(line.contains("failed to fetch the keys of an issuer"), "{line}");
        }
        let kill = std::process::Command::new("kill").arg(gateway.id().to_string()).status();
        assert!(kill.unwrap().success());
        assert_eq!(gateway.exit_code(), Some(0));
        let lines = gateway.all_printed().await;
        assert_eq!(lines.iter().any(|line| line.contains("pintle_oauth")), is_logged, "{lines:?}");
        assert!(
            lines.iter().all(|line| !line.contains(token.as_str()) && !line.contains("INFO")),
            "{lines:?}"
        );
    }
}

/// A target that writes more to its standard error than the pipe and the queue of the log hold.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gateway_whose_standard_error_is_not_read_goes_on_and_counts_what_is_lost() {
    let machine = Machine::new("gateway-log-blocked");
    let floods = format!("yes {} | head -n 5000 >&2; exec cat", "x".repeat(200));
    let target = format!("[targets.loud]\ncommand = [\"sh\", \"-c\", \"{floods}\"]\n");
    machine.write("team.toml", &target);
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0", "-v"]).current_dir(machine.path(""));
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().trim_end_matches("/mcp").to_owned();
    let lost = "pintle_gateway_log_lost_total{log=\"stderr\"} ";
    let counted = async {
        while page_at(&address, "/metrics", "").contains(&format!("{lost}0\n")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.unwrap();
    assert!(page_at(&address, "/metrics", "").contains(lost));
    assert!(page_at(&address, "/health", "").ends_with("ok\n"));
    process.kill().unwrap();
    process.wait().unwrap();
}
