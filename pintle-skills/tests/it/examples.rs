//! The examples run and do what they say.

use std::{env, fs, path::PathBuf, process::Stdio};

use pintle::{Client, Connection, client::Mode, transport::Child};
use pintle_skills::apps::{RenderApps, app_uri};
use serde_json::json;
use tokio::process::Command;

/// The program of an example. Cargo builds it beside the tests, unless only one of them was asked for.
fn program(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    let built = built.with_extension(env::consts::EXE_EXTENSION);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified());
    let stale = changed(&source).unwrap() > changed(&built).unwrap_or(std::time::UNIX_EPOCH);
    assert!(!stale, "run `cargo build --package pintle-skills --examples --all-features` first");
    built
}

/// Talks to an example with a session and without one.
async fn both(client: Client, name: &str, talk: impl AsyncFn(Connection)) {
    for mode in [Mode::Legacy, Mode::Modern] {
        let server = client.clone().mode(mode);
        let server = server.connect(Child::spawn(program(name), [""; 0]).unwrap()).await.unwrap();
        talk(server.clone()).await;
        server.close().await;
    }
}

async fn text_of(server: &Connection, tool: &str, arguments: serde_json::Value) -> String {
    server.call_tool(tool, arguments).await.unwrap().text()
}

/// What a program that is no server prints.
async fn printed(name: &str) -> String {
    let mut command = Command::new(program(name));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}: {complaints}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn client() -> Client {
    Client::new("examples", "0")
}

#[tokio::test]
async fn an_app_is_shown_by_hosts_and_a_text_elsewhere() {
    for (client, text) in
        [(client(), "The dice shows "), (client().with(RenderApps), "The user sees the dice: ")]
    {
        both(client, "apps", async |server| {
            let rolled = text_of(&server, "roll", json!({})).await;
            assert!(rolled.starts_with(text), "{rolled}");
            let tools = server.tools().await.unwrap();
            let page = server.read_resource(app_uri(&tools[0]).unwrap()).await.unwrap();
            assert_eq!(page.contents[0].mime_type.as_deref(), Some("text/html;profile=mcp-app"));
        })
        .await;
    }
}

#[tokio::test]
async fn a_skill_is_used_as_it_was_approved() {
    let printed = printed("skills").await;
    assert_eq!(
        printed.lines().collect::<Vec<_>>(),
        [
            "invoices: Writes invoices. Use it when the user has to bill somebody.",
            "approved: true",
            "instructions: Fill in letter.md, and ask for the amount if it is not known.",
            "letter: Dear …, please pay …",
            "not used: it has 28 bytes, and 25 were listed",
        ]
    );
}
