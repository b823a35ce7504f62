//! Tasks of a server that has both eras: a client gets those of the one that it has itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Server,
    client::Mode,
    server::{Cx, ToolRoute, tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::across_eras::{declares, follow, kitchen};
use crate::support::{
    drop_counter::DropCounter,
    eras::{Client as EraClient, R3, R4, R5},
    tasks::{outcome, start},
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Says in which era it was called.
fn era() -> ToolRoute {
    tool("era", |cx: Cx| async move {
        // What is there at once is no task.
        sleep(Duration::from_secs(1)).await;
        if cx.session().is_some() { "session" } else { "stateless" }
    })
}

fn behind() -> Server {
    kitchen(&DropCounter::default()).tool(era().task("optional"))
}

/// A relay to `first` over its first connection, and to what `later` returns over the others.
async fn relay(mode: Mode, first: Server, later: impl Fn() -> Option<Server> + Send + 'static) -> Relay {
    let mut first = Some(first);
    let connector = move || {
        let server = first.take().or_else(&later);
        let connected = server.ok_or_else(|| std::io::Error::other("no more connections"));
        let connected = connected.and_then(|server| server.in_process().map_err(std::io::Error::other));
        async { connected }
    };
    Relay::connect(Client::new("relay", "1.0.0").mode(mode), connector).await.unwrap()
}

/// The era that a call has behind, as a task and as none.
async fn eras(client: &mut EraClient) -> (String, String) {
    let id = start(client, "era").await;
    let done = outcome(client, &id).await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned();
    // Of a client that follows tasks, every call of this tool is one.
    let called = if client.is_stateless() { text.clone() } else { client.tool("era").await };
    (text, called)
}

#[tokio::test(start_paused = true)]
async fn tasks_are_those_of_the_era_of_the_client() {
    for (mode, of_sessions, of_others) in
        [(Mode::Auto, "session", "stateless"), (Mode::Modern, "stateless", "stateless")]
    {
        let relay = async || relay(mode, behind(), || Some(behind())).await;
        for (front, prefix) in [
            (relay().await.into_server(), ""),
            (Server::new("front", "1").provider(relay().await), ""),
            (Server::new("outer", "1").mount("x", relay().await), "x_"),
        ] {
            for (revision, era) in [(R4, of_sessions), (R5, of_others)] {
                let mut client = EraClient::open(&front, revision, declares()).await;
                if prefix.is_empty() {
                    assert_eq!(eras(&mut client).await, (era.to_owned(), era.to_owned()), "{mode:?}");
                }
                let followed = follow(&mut client, &format!("{prefix}order")).await;
                assert_eq!(followed.result["content"][0]["text"], "tea", "{mode:?} {}", followed.result);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_lists_and_cancels_its_own_tasks_behind() {
    let dropped = DropCounter::default();
    let server = kitchen(&dropped);
    let later = server.clone();
    let front = relay(Mode::Auto, server, move || Some(later.clone())).await.into_server();
    let mut sessions =
        [EraClient::open(&front, R4, declares()).await, EraClient::open(&front, R4, declares()).await];
    let id = start(&mut sessions[0], "sleep").await;
    let listed = sessions[0].call("tasks/list", json!({})).await["result"]["tasks"].clone();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["taskId"]), (Some(1), &id), "{listed}");
    let cancelled = sessions[0].call("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(dropped.count(), 1);
}

/// Whether a tool has to be called as a task is said in each era, and the list of one is not that of the other.
#[tokio::test(start_paused = true)]
async fn a_session_without_tasks_waits_for_the_one_that_a_tool_requires() {
    let front = relay(Mode::Auto, behind(), || Some(behind())).await.into_server();
    let mut stateless = EraClient::open(&front, R5, json!({})).await;
    let mut session = EraClient::open(&front, R3, json!({})).await;
    for client in [&mut session, &mut stateless] {
        let listed = client.call("tools/list", json!({})).await;
        assert!(listed["result"]["tools"].is_array(), "{listed}");
    }
    let failed = session.call("tools/call", json!({"name": "fail"})).await;
    assert_eq!((&failed["error"]["code"], &failed["error"]["data"]["tray"]), (&json!(-31999), &json!(2)));
}

/// What it says in a session counts for sessions: tasks that it does not have there are not offered there.
#[tokio::test(start_paused = true)]
async fn each_era_is_offered_the_tasks_that_the_server_has_in_it() {
    let without = Server::new("kitchen", "1.0.0").tool(era());
    let front = relay(Mode::Auto, behind(), move || Some(without.clone())).await.into_server();
    let mut stateless = EraClient::open(&front, R5, declares()).await;
    assert!(stateless.declared().await["capabilities"]["extensions"][EXTENSION].is_object());
    assert_eq!(eras(&mut stateless).await.0, "stateless");
    let mut session = EraClient::open(&front, R4, declares()).await;
    assert_eq!(session.declared().await["capabilities"]["tasks"], Value::Null);
    assert_eq!(session.tool("era").await, "session");
}

/// Without a session there is nothing to pair: the relay has the tasks of sessions itself.
#[tokio::test(start_paused = true)]
async fn a_server_that_opens_no_session_is_used_without() {
    let opened = Arc::<AtomicUsize>::default();
    let count = opened.clone();
    let none = move || {
        count.fetch_add(1, Ordering::SeqCst);
        None
    };
    let front = relay(Mode::Auto, behind(), none).await.into_server();
    let mut session = EraClient::open(&front, R4, declares()).await;
    assert_eq!(eras(&mut session).await, ("stateless".to_owned(), "stateless".to_owned()));
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}
