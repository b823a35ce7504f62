//! Several servers as one.

use pintle::{Connection, Error, client::Group, testing::Peer};
use serde_json::{Value, json};

use crate::support::scripted_server::{SESSION, STATELESS, client, open, text};

/// Serves a list of tools and calls of them, for ever.
async fn play(mut peer: Peer, tools: Value) {
    while let Some(request) = peer.next().await {
        match request["method"].as_str().unwrap() {
            "tools/list" => peer.answers(&request, json!({"tools": tools})).await,
            "prompts/list" => peer.answers(&request, json!({"prompts": [{"name": "hello"}]})).await,
            "prompts/get" => {
                assert_eq!(request["params"]["name"], "hello");
                peer.answers(&request, json!({"messages": []})).await;
            }
            "tools/call" => {
                let said = format!("ran {}", request["params"]["name"].as_str().unwrap());
                peer.answers(&request, text(&said)).await;
            }
            other => panic!("{other}"),
        }
    }
}

async fn member(revision: &str, names: &[&str]) -> Connection {
    let (server, peer) = open(&client(), revision, json!({})).await;
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "inputSchema": {}})).collect();
    tokio::spawn(play(peer, tools.into()));
    server
}

#[tokio::test(start_paused = true)]
async fn names_are_told_apart_by_their_server() {
    let mut group = Group::new();
    group.add("git", member(SESSION, &["status", "log"]).await).unwrap();
    group.add("files", member(STATELESS, &["status", "a.b"]).await).unwrap();
    let listing = group.tools().await;
    let names: Vec<_> = listing.items.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["files.status", "files.a.b", "git.status", "git.log"]);
    assert!(listing.failed.is_empty());
    for (name, said) in [("git.status", "ran status"), ("files.a.b", "ran a.b")] {
        let result = group.call_tool(name, json!({})).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some(said));
    }
    assert_eq!(group.prompts().await.items[1].name, "git.hello");
    assert!(group.get_prompt("git.hello", ()).await.is_ok());
    for name in ["status", "nobody.status", ".status", "git"] {
        let error = group.call_tool(name, ()).await.unwrap_err().to_string();
        assert!(error.ends_with("names begin with one of `files`, `git` and `.`"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_broken_does_not_break_the_others() {
    let mut group = Group::new();
    group.add("good", member(SESSION, &["a"]).await).unwrap();
    let (broken, peer) = open(&client(), SESSION, json!({})).await;
    group.add("gone", broken).unwrap();
    let (silent, _peer) = open(&client(), SESSION, json!({})).await;
    group.add("silent", silent).unwrap();
    drop(peer);
    let listing = group.tools().await;
    assert_eq!(listing.items.len(), 1);
    let failed: Vec<_> = listing.failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["gone", "silent"]);
    assert!(matches!(listing.failed[0].1, Error::Closed(_)));
    assert!(matches!(listing.failed[1].1, Error::Timeout(_)));
    assert!(group.call_tool("good.a", ()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn names_that_could_be_mistaken_are_refused() {
    let mut group = Group::new().separator("__").unwrap();
    let server = member(SESSION, &["a"]).await;
    for name in ["", "a__b", "a_", "__"] {
        assert!(matches!(group.add(name, server.clone()).unwrap_err(), Error::Misuse(_)), "{name}");
    }
    group.add("a", server.clone()).unwrap();
    assert!(group.add("a", server).unwrap_err().to_string().contains("has a member `a` already"));
    assert_eq!(group.tools().await.items[0].name, "a__a");
    assert!(group.clone().separator("a").is_err());
    assert!(Group::new().separator("").is_err());
    assert!(group.remove("a").is_some());
    assert!(group.tools().await.items.is_empty());
}
