//! Many sessions behind one bridge: what each takes of the system.

use std::{fs, process::Command};

use pintle::{
    Client,
    client::{Mode, http::Http},
};
use serde_json::json;

use crate::support::{HttpServing, pintle};

const SESSIONS: usize = 60;

/// With a limit that is lower than what they need, and that the bridge may raise.
#[tokio::test]
async fn a_session_takes_a_socket_to_each_side_and_the_limit_of_files_is_raised_for_it() {
    let demo = HttpServing::demo();
    let mut limited = Command::new("sh");
    let words = ["bridge", "--http", "127.0.0.1:0", "--era", "session", &demo.url];
    limited.args(["-c", r#"ulimit -Sn 64; exec "$0" "$@""#, env!("CARGO_BIN_EXE_pintle")]).args(words);
    for (name, value) in pintle().get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let bridge = HttpServing::of(limited);
    let http = Http::new(&bridge.url).unwrap();
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        let client = Client::new("host", "1.0.0").mode(Mode::Legacy).connect(http.clone()).await.unwrap();
        client.call_tool("tide", json!({"port": "bergen", "hour": 4})).await.unwrap();
        clients.push(client);
    }
    let files = fs::read_dir(format!("/proc/{}/fd", bridge.id())).unwrap().count();
    assert!((2 * SESSIONS..5 * SESSIONS / 2).contains(&files), "{files}");
    for client in clients {
        client.close().await;
    }
}
