//! What clients of a bridge over HTTP may use, and what of theirs reaches the server.

use std::{
    io::Write as _,
    sync::{Arc, Mutex},
};

use pintle::{
    Client,
    client::{Mode, http::Http},
};
use serde_json::{Value, json};

use crate::support::{
    HttpServing,
    http_request::{HttpRequest, listen},
    machine::Machine,
    protected::ProtectedServer,
    run,
};

/// A server without sessions that has one tool, and the heads of the requests that it got.
fn recording() -> (String, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = heads.clone();
    let address = listen(move |mut connection, _| {
        let HttpRequest { head, body } = HttpRequest::read(connection)?;
        seen.lock().unwrap().push(head);
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut result = match request["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
            _ => json!({"content": []}),
        };
        result["resultType"] = "complete".into();
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        let length = answer.len();
        write!(
            connection,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
        )
    });
    (format!("http://{address}/mcp"), heads)
}

#[tokio::test]
async fn the_token_of_a_client_does_not_reach_the_server() {
    for options in [&[][..], &["--bearer-env", "HOME"]] {
        let (url, heads) = recording();
        let bridge = HttpServing::start(&[&["bridge", "--http", "127.0.0.1:0", &url], options].concat());
        // The tests start it with this home.
        let token = "/no/such/home";
        for mode in [Mode::Legacy, Mode::Modern] {
            let http = Http::new(&bridge.url).unwrap().bearer(token).unwrap();
            let client = Client::new("host", "1.0.0").mode(mode).connect(http).await.unwrap();
            client.call_tool("t", ()).await.unwrap();
        }
        let heads = heads.lock().unwrap();
        assert!(heads.iter().any(|head| head.contains("tools/call")), "{heads:#?}");
        for head in &*heads {
            assert!(!head.to_ascii_lowercase().contains("authorization") && !head.contains(token), "{head}");
        }
    }
}

#[test]
fn the_rights_of_the_owner_are_not_for_everybody() {
    let (machine, server) = (Machine::new("bridge-rights"), ProtectedServer::start());
    let url = server.url.as_str();
    assert_eq!(machine.typed(&["login", url, "--device"]).code, Some(0));
    let program = env!("CARGO_BIN_EXE_pintle");
    let public = ["bridge", "--http", "0.0.0.0:0", "--insecure-no-auth", "--allow-host", "box.example"];
    for (target, rights) in [
        (&[url][..], "your login"),
        (&["http://127.0.0.1:1/mcp", "--token-env", "HOME"], "the token of `--token-env`"),
        (&["http://127.0.0.1:1/mcp", "--header", "X-Key: s3cret"], "its headers"),
        (&["--env", "KEY=s3cret", "--", program, "demo"], "its variables"),
        (&["secret"], "the headers or variables of its configuration"),
        (&["http://127.0.0.1:1/mcp?token=s3cret"], "the secret in its URL or its words"),
        (&["--", program, "--token", "s3cret"], "the secret in its URL or its words"),
    ] {
        let words = [&public[..], target].concat();
        let refused = run(machine.command().args(words).env("PINTLE_TEST_TOKEN", "s3cret"));
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains(&format!("with {rights}: leave out `--insecure-no-auth`")),
            "{refused:?}"
        );
        assert!(refused.stdout.is_empty() && !refused.stderr.contains("s3cret"), "{refused:?}");
    }
}
