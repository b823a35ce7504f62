//! The texts that `docs/errors.md` explains are the texts that people read: each heading is provoked here.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use pintle::{
    Client, Connection, Result, Server, Timeouts,
    client::{Answer, Mode, Policy},
    server::{Args, Cx, Extension, State, ToolError, ToolRoute, tool},
};
use pintle_testing::Peer;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle};

const PAGE: &str = include_str!("../../../../docs/errors.md");

#[derive(Deserialize, JsonSchema)]
struct Fields {
    #[expect(dead_code, reason = "only its schema is looked at")]
    many: Vec<BTreeMap<String, i64>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Count {
    #[expect(dead_code, reason = "only its schema is looked at")]
    count: u8,
}

/// The headings that are texts, without the backticks around them; `…` stands for anything.
fn headings() -> Vec<&'static str> {
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("### "));
    headings
        .map(|heading| {
            let fence = heading.len() - heading.trim_start_matches('`').len();
            heading[fence..heading.len() - fence].trim()
        })
        .collect()
}

fn fits(pattern: &str, detail: &str) -> bool {
    let mut rest = detail;
    for (at, part) in pattern.split('…').enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(found) if at > 0 => rest = &rest[found + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || pattern.ends_with('…')
}

#[tokio::test(start_paused = true)]
async fn every_heading_is_what_people_read() {
    let mut detail = at_the_start();
    detail.extend(in_handlers().await);
    detail.extend(in_clients().await);
    detail.extend(at_the_door().await);
    detail.extend(by_the_compiler());
    let headings = headings();
    assert!(headings.len() > 20, "{headings:?}");
    for heading in headings {
        assert!(
            detail.iter().any(|detail| fits(heading, detail)),
            "nobody says `{heading}`; they say {detail:#?}"
        );
    }
}

fn at_the_start() -> Vec<String> {
    let check = |tools: Vec<ToolRoute>| Server::new("s", "0").tools(tools).check().unwrap_err().to_string();
    let bare = |name: &str| tool(name, || async { "" });
    vec![
        check(vec![bare("add"), bare("add")]),
        check(vec![bare("my tool")]),
        check(vec![tool("save", |_: State<Arc<u8>>| async { "" })]),
        Server::new("s", "0").with_state(1_u8).check().unwrap_err().to_string(),
        check(vec![tool("save", |_: Args<Count>, _: Args<Count>| async { "" })]),
        check(vec![tool("save", |_: Args<Vec<i64>>| async { "" })]),
        check(vec![bare("save").read_only().destructive(true)]),
        check(vec![bare("save").asks::<Fields>()]),
    ]
}

async fn twice(cx: Cx) -> Result<String, ToolError> {
    cx.elicit::<Count>("count", "How many?").await?;
    cx.elicit::<Count>("count", "And how many more?").await?;
    Ok(String::new())
}

async fn late(cx: Cx) -> Result<String, ToolError> {
    let asking = tokio::spawn({
        let cx = cx.clone();
        async move { cx.elicit::<Count>("late", "How many?").await.unwrap_err().to_string() }
    });
    cx.extensions().get::<mpsc::Sender<JoinHandle<String>>>().unwrap().try_send(asking).unwrap();
    Ok(String::new())
}

/// Of what never reaches a handler.
async fn at_the_door() -> Vec<String> {
    let mut limits = pintle::proto::Limits::default();
    limits.in_flight = 0;
    let server = Server::new("s", "0").tool(tool("open", || async { "" }).requires(["safe"]));
    let error = async |server: &Server| {
        let (ours, theirs) = pintle::transport::memory();
        drop(server.serve_to(ours, pintle::server::Caller::new()).unwrap());
        let connection = Client::new("c", "0").connect(theirs).await.unwrap();
        inner(connection.call_tool("open", ()).await)
    };
    let lacking = error(&server).await;
    let busy = error(&server.limits(limits)).await;
    let mut headers = http::HeaderMap::new();
    headers.insert("host", http::HeaderValue::from_static("vm:8000"));
    let (method, target) = (http::Method::POST, http::Uri::from_static("/mcp"));
    let head = pintle::proto::http::Head::new(&method, &target, &headers);
    let refusal = pintle::proto::http::Guard::loopback().check(&head).unwrap_err();
    vec![lacking, busy, refusal.error.message.into_owned()]
}

async fn in_handlers() -> Vec<String> {
    let once = |cx: Cx| async move { cx.elicit::<Count>("count", "How many?").await.map(|_| "fine") };
    let server = Server::new("s", "0")
        .tool(tool("once", once))
        .tool(tool("twice", twice))
        .tool(tool("panics", || async {
            if true {
                panic!("on purpose");
            }
        }))
        .tool(tool("extended", |_: Extension<u8>| async { "" }));
    let error = async |client: Client, name: &str| {
        let connection = client.connect(server.in_process().unwrap()).await.unwrap();
        inner(connection.call_tool(name, ()).await)
    };
    let plain = Client::new("c", "0");
    let counts = plain.clone().on_elicit(|_| async { Answer::accept(json!({"count": 1})) });
    let wrong = plain.clone().on_elicit(|_| async { Answer::accept(json!({"count": 1000})) });
    let stale = {
        let (mut peer, transport) = Peer::new();
        let serving = Server::new("s", "0").tool(tool("once", once));
        let params = json!({
            "name": "once", "requestState": "AAAA", "inputResponses": {},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        });
        drop(serving.serve(transport).unwrap());
        peer.asks(1, "tools/call", params).await;
        peer.next().await.unwrap()["error"]["message"].as_str().unwrap().to_owned()
    };
    let used = {
        let (mut peer, transport) = Peer::new();
        drop(Server::new("s", "0").tool(tool("once", once)).serve(transport).unwrap());
        let mut params = json!({
            "name": "once",
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        });
        peer.asks(1, "tools/call", params.clone()).await;
        params["requestState"] = peer.next().await.unwrap()["result"]["requestState"].take();
        let mut last = json!(null);
        for (id, action) in [(2, "decline"), (3, "cancel")] {
            params["inputResponses"] = json!({"count": {"action": action}});
            peer.asks(id, "tools/call", params.clone()).await;
            last = peer.next().await.unwrap();
        }
        last["error"]["message"].as_str().unwrap().to_owned()
    };
    let unanswered = {
        let (mut peer, transport) = Peer::new();
        drop(Server::new("s", "0").tool(tool("once", once)).serve(transport).unwrap());
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "0"}});
        peer.asks(1, "initialize", hello).await;
        peer.next().await.unwrap();
        peer.asks(2, "tools/call", json!({"name": "once"})).await;
        // The question, that it is taken back, and why.
        peer.next().await.unwrap();
        peer.next().await.unwrap();
        peer.next().await.unwrap()["error"]["message"].as_str().unwrap().to_owned()
    };
    let over = {
        let (sender, mut tasks) = mpsc::channel::<JoinHandle<String>>(1);
        let (ours, theirs) = pintle::transport::memory();
        let caller = pintle::server::Caller::new().with(sender);
        drop(Server::new("s", "0").tool(tool("late", late)).serve_to(ours, caller).unwrap());
        // A client that thinks for ever.
        let slow = plain.clone().on_elicit(|_| std::future::pending::<Answer>());
        slow.connect(theirs).await.unwrap().call_tool("late", ()).await.unwrap();
        tasks.recv().await.unwrap().await.unwrap()
    };
    vec![
        error(plain.clone(), "once").await,
        error(counts, "twice").await,
        error(wrong, "once").await,
        error(plain.clone(), "panics").await,
        error(plain, "extended").await,
        stale,
        used,
        unanswered,
        over,
    ]
}

/// What the other side said.
fn inner<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result.unwrap_err() {
        pintle::Error::Rpc(error) => error.message.to_string(),
        other => other.to_string(),
    }
}

async fn in_clients() -> Vec<String> {
    let server = Server::new("s", "0").tool(tool("fails", || async { Err::<(), _>(ToolError::new("no")) }));
    let client = Client::new("c", "0");
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    let asking = client.clone().policy(|_| Policy::ask(async { false }));
    let asking = asking.connect(server.in_process().unwrap()).await.unwrap();
    let (mut dying, going) = Peer::new();
    let gone =
        tokio::join!(client.connect(going), async move { drop(dying.receives("server/discover").await) }).0;
    let (_silent, transport) = Peer::new();
    vec![
        inner(connection.call_tool("gone", ()).await),
        inner(connection.call_tool_as::<u8>("fails", ()).await),
        inner(asking.call_tool("fails", ()).await),
        inner(gone),
        inner(client.clone().mode(Mode::Legacy).connect(transport).await),
        waiting(&client).await,
        inner(insisting(&client).await.call_tool("t", ()).await),
    ]
}

/// A server that answers nothing after it was opened.
async fn waiting(client: &Client) -> String {
    let (mut peer, transport) = Peer::new();
    let client = client.clone().mode(Mode::Legacy);
    let opening = client.connect(transport);
    let hello = async {
        let hello = peer.receives("initialize").await;
        let version = hello["params"]["protocolVersion"].clone();
        peer.answers(&hello, json!({"protocolVersion": version, "capabilities": {}})).await;
    };
    let (connection, ()) = tokio::join!(opening, hello);
    let call = connection.unwrap().call_tool("t", ()).await;
    assert_eq!(Timeouts::default().call, Duration::from_secs(30));
    inner(call)
}

/// A server that never stops asking.
async fn insisting(client: &Client) -> Connection {
    let (mut peer, transport) = Peer::new();
    tokio::spawn(async move {
        while let Some(message) = peer.next().await {
            let result = match message["method"].as_str() {
                Some("server/discover") => {
                    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
                }
                Some("tools/call") => json!({"resultType": "input_required", "requestState": "more"}),
                _ => continue,
            };
            peer.answers(&message, result).await;
        }
    });
    client.connect(transport).await.unwrap()
}

/// What rustc says, as the cases of `tests/wrong` have it.
fn by_the_compiler() -> Vec<String> {
    let wrong = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let folders = [wrong.join("prompts"), wrong].map(|folder| fs::read_dir(folder).unwrap());
    let files = folders.into_iter().flatten().map(|file| file.unwrap().path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "stderr"));
    let texts: Vec<_> = texts.map(|path| fs::read_to_string(path).unwrap()).collect();
    let errors = texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("error"));
    errors.filter_map(|line| line.split_once(": ").map(|(_, detail)| detail.to_owned())).collect()
}
