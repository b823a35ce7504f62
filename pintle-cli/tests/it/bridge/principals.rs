//! Two principals through one bridge: neither sees what the other has.

use pintle::{
    Client, Connection,
    client::{Answer, Mode, http::Http},
};

use crate::support::{HttpServing, pintle};

/// A bridge with two clients, each of which has a token.
fn bridge(behind: &[&str]) -> HttpServing {
    let mut command = pintle();
    command.args(["bridge", "--http", "127.0.0.1:0", "--bearer-env", "ALICE", "--bearer-env", "BOB"]);
    command.args(behind).env("ALICE", "alice-token").env("BOB", "bob-token");
    HttpServing::of(command)
}

async fn connect(bridge: &HttpServing, token: &str, mode: Mode) -> pintle::Result<Connection> {
    let http = Http::new(&bridge.url)?.bearer(token)?;
    let answer = token.to_owned();
    let client = Client::new("host", "1.0.0").mode(mode).on_elicit(move |_| {
        let answer = serde_json::json!({"boat": answer, "nights": 1});
        async move { Answer::accept(answer) }
    });
    client.connect(http).await
}

/// Reserves a berth, and returns its number and who it is for: `1 for the alice-token`.
async fn berth(client: &Connection) -> String {
    let text = client.call_tool("berth", ()).await.unwrap().text();
    text.trim_start_matches("Berth ").trim_end_matches(", 1 nights.").to_owned()
}

#[tokio::test]
async fn each_has_its_own_session_of_the_server_and_its_own_answers() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let bridge = bridge(&["--era", "session", "--", program, "demo"]);
    for mode in [Mode::Legacy, Mode::Modern] {
        let alice = connect(&bridge, "alice-token", mode).await.unwrap();
        let bob = connect(&bridge, "bob-token", mode).await.unwrap();
        for number in 1..=5 {
            // At the same time, so that a question of one could reach the other.
            let (for_alice, for_bob) = tokio::join!(berth(&alice), berth(&bob));
            // The server counts the berths of a session.
            assert_eq!(for_alice, format!("{number} for the alice-token"));
            assert_eq!(for_bob, format!("{number} for the bob-token"));
        }
        alice.call_tool("post", serde_json::json!({"text": "for alice"})).await.unwrap();
        let read = async |client: &Connection| {
            let read = client.read_resource("harbour://notice").await.unwrap();
            serde_json::to_string(&read).unwrap()
        };
        assert!(read(&alice).await.contains("for alice"));
        assert!(read(&bob).await.contains("All berths are open."));
    }
}

#[tokio::test]
async fn questions_reach_the_one_who_called_a_server_that_both_share() {
    let bridge = bridge(&["--era", "stateless", "demo"]);
    for mode in [Mode::Legacy, Mode::Modern] {
        let alice = connect(&bridge, "alice-token", mode).await.unwrap();
        let bob = connect(&bridge, "bob-token", mode).await.unwrap();
        for _ in 0..5 {
            let (for_alice, for_bob) = tokio::join!(berth(&alice), berth(&bob));
            assert!(for_alice.ends_with(" for the alice-token"), "{for_alice}");
            assert!(for_bob.ends_with(" for the bob-token"), "{for_bob}");
        }
    }
}

#[tokio::test]
async fn a_token_of_nobody_is_refused() {
    let bridge = bridge(&["demo"]);
    let refused = connect(&bridge, "carol-token", Mode::Auto).await.unwrap_err().to_string();
    assert!(refused.contains("the token is not the one of this server"), "{refused}");
}

/// The session of one principal is not there for the other, who knows its id.
#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    use std::{
        io::{Read as _, Write as _},
        net::TcpStream,
    };

    let bridge = bridge(&["--era", "session", "demo"]);
    let address = bridge.url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let post = |token: &str, session: Option<&str>, body: &str| {
        let mut connection = TcpStream::connect(&address).unwrap();
        let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        write!(
            connection,
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{session}accept: application/json, \
             text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        text
    };
    let opened = post(
        "alice-token",
        None,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#,
    );
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert!(post("alice-token", Some(&id), ping).starts_with("HTTP/1.1 200"));
    assert!(post("bob-token", Some(&id), ping).starts_with("HTTP/1.1 404"));
}
