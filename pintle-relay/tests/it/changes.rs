//! Changes of programs behind a relay, of which each client has its own.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Caller, Cx, Next, ToolError, around, resource, tool},
    types::RpcError,
};
use pintle_relay::Relay;
use serde_json::{Value, json};

use super::world::{self, ERAS, everything};
use crate::support::{
    eras::{Client, R4, R5},
    line_client::{Raw, modern},
};

/// Counts the programs that run.
#[derive(Clone, Default)]
struct Programs(Arc<AtomicUsize>);

struct Running(Programs);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Programs {
    /// A server with a state of its own, as in a process of its own.
    fn start(&self) -> Server {
        self.0.fetch_add(1, Ordering::SeqCst);
        let running = Arc::new(Running(self.clone()));
        Server::new("dice", "1.0.0")
            .may_change()
            .tool(tool("grow", |cx: Cx| async move {
                cx.server().add_tool(tool("grown", || async { "" }))?;
                Ok::<_, ToolError>("grown")
            }))
            .tool(tool("touch", |cx: Cx| async move {
                cx.server().resource_updated("note://1");
                "touched"
            }))
            .tool(tool("ask", |cx: Cx| async move {
                let agreed = cx.elicit::<()>("sure", "Sure?").await?.accepted().is_some();
                Ok::<_, ToolError>(agreed.to_string())
            }))
            .tool(tool("exit", move |cx: Cx| {
                let _running = running.clone();
                async move {
                    for session in cx.server().sessions() {
                        let _ = session.close().await;
                    }
                    "never"
                }
            }))
            .resource(resource("note://1", "one", || async { "first" }))
            .layer(&around(|cx: Cx, next: Next| async move {
                match cx.target() {
                    Some(target)
                        if cx.method() == "resources/subscribe" && target.name() == "note://secret" =>
                    {
                        pintle::server::Outcome::Failed(RpcError::invalid_params("`note://secret` is secret"))
                    }
                    _ => next.run(cx).await,
                }
            }))
    }

    async fn relay(&self) -> Relay {
        let programs = self.clone();
        let connector = move || {
            let connected = programs.start().in_process().map_err(io::Error::other);
            async { connected }
        };
        Relay::connect(world::client(R4), connector).await.unwrap()
    }

    async fn reaches(&self, count: usize) {
        for _ in 0..1000 {
            if self.0.load(Ordering::SeqCst) == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} instead of {count}", self.0.load(Ordering::SeqCst));
    }
}

fn count(list: &Value) -> usize {
    list["result"]["tools"].as_array().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_client_is_notified_of_the_changes_of_its_own_program() {
    for downstream in ERAS {
        let front = world::front(&Programs::default().relay().await);
        let mut client = Client::open(&front, downstream, everything()).await;
        client.listen(&["note://1"]).await;
        let before = count(&client.call("tools/list", json!({})).await);
        client.tool("touch").await;
        let received = client.receive().await;
        assert_eq!(received["method"], "notifications/resources/updated", "{downstream}: {received}");
        assert_eq!(received["params"]["uri"], "note://1");
        client.tool("grow").await;
        let received = client.receive().await;
        assert_eq!(received["method"], "notifications/tools/list_changed", "{downstream}: {received}");
        assert_eq!(count(&client.call("tools/list", json!({})).await), before + 1, "{downstream}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_else_is_notified_of_them() {
    let front = world::front(&Programs::default().relay().await);
    let (mut ann, mut bob) =
        (Client::open(&front, R4, everything()).await, Client::open(&front, R4, everything()).await);
    ann.listen(&["note://1"]).await;
    bob.listen(&["note://1"]).await;
    ann.tool("touch").await;
    ann.tool("grow").await;
    assert_eq!(ann.receive().await["params"]["uri"], "note://1");
    tokio::time::sleep(Duration::from_secs(5)).await;
    bob.tool("touch").await;
    assert_eq!(bob.receive().await["method"], "notifications/resources/updated");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bob.received(), Vec::<Value>::new());
}

/// A server without sessions whose connection has the token of ann.
#[tokio::test(start_paused = true)]
async fn what_is_connected_for_a_principal_is_heard_by_no_other() {
    for downstream in ERAS {
        let behind = Programs::default().start();
        let relay = world::relay(&behind, R5).await.for_principal("ann");
        let front = world::front(&relay);
        let mut clients = Vec::new();
        for name in ["ann", "bob"] {
            let raw = Raw::known(&front, Caller::new().principal(name));
            let mut client = Client::over(raw, downstream, everything()).await;
            client.listen(&["note://1"]).await;
            clients.push(client);
        }
        let [ann, bob] = &mut clients[..] else { panic!() };
        behind.resource_updated("note://1");
        behind.add_tool(tool("more", || async { "" })).unwrap();
        let mut received =
            [ann.receive().await["method"].to_string(), ann.receive().await["method"].to_string()];
        received.sort();
        let expected = ["\"notifications/resources/updated\"", "\"notifications/tools/list_changed\""];
        assert_eq!(received, expected, "{downstream}");
        tokio::time::sleep(Duration::from_secs(5)).await;
        bob.call("ping", json!({})).await;
        assert_eq!(bob.received(), Vec::<Value>::new(), "{downstream}");
    }
}

/// Two principals without a session, on connections of their own.
#[tokio::test(start_paused = true)]
async fn principals_without_a_session_are_notified_of_their_own_programs() {
    let front = world::front(&Programs::default().relay().await);
    let listen = modern(
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["note://1"]}}),
        json!({}),
    );
    let mut clients = Vec::new();
    for name in ["ann", "bob"] {
        let mut client = Raw::known(&front, Caller::new().principal(name));
        client.request("subscriptions/listen", listen.clone()).await;
        let acknowledged = client.recv().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
        clients.push(client);
    }
    let [ann, bob] = &mut clients[..] else { panic!() };
    for client in [ann, bob] {
        client.request("tools/call", modern(json!({"name": "touch"}), json!({}))).await;
        let (mut touched, mut updated) = (0, 0);
        while touched + updated < 2 {
            let message = client.recv().await;
            touched += usize::from(message["result"]["content"][0]["text"] == "touched");
            updated += usize::from(message["method"] == "notifications/resources/updated");
        }
        assert_eq!((touched, updated), (1, 1));
    }
}

/// The first connection, which it depends on, was closed a moment ago.
#[tokio::test(start_paused = true)]
async fn a_client_that_shares_nothing_is_notified_of_changes_from_its_acknowledgement_on() {
    let behind = Programs::default().start();
    let front = world::front(&world::relay(&behind, R4).await);
    let mut session = Client::open(&front, R4, everything()).await;
    session.tool("touch").await;
    let mut nobody = Client::over(Raw::known(&front, Caller::new()), R5, everything()).await;
    nobody.listen(&["note://1"]).await;
    behind.resource_updated("note://1");
    assert_eq!(nobody.receive().await["params"]["uri"], "note://1");
    behind.add_tool(tool("more", || async { "" })).unwrap();
    assert_eq!(nobody.receive().await["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn there_are_as_many_programs_as_sessions() {
    let programs = Programs::default();
    let front = world::front(&programs.relay().await);
    programs.reaches(1).await;
    let mut clients = Vec::new();
    for number in 1..=3 {
        let mut client = Client::open(&front, R4, everything()).await;
        client.listen(&["note://1"]).await;
        client.tool("touch").await;
        clients.push(client);
        programs.reaches(number).await;
    }
    drop(clients);
    programs.reaches(0).await;
    // One without a session has its own too, for lists, changes and calls.
    let mut client = Client::open(&front, world::ERAS[1], everything()).await;
    client.listen(&["note://1"]).await;
    client.call("tools/list", json!({})).await;
    client.tool("touch").await;
    client.receive().await;
    programs.reaches(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_survives_the_program_that_it_was_made_in() {
    for downstream in ERAS {
        let programs = Programs::default();
        let front = world::front(&programs.relay().await);
        let mut client = Client::open(&front, downstream, everything()).await;
        client.listen(&["note://1"]).await;
        let id = client.send("tools/call", json!({"name": "exit"})).await;
        client.until(id).await;
        // Another one is started without a call.
        tokio::time::sleep(Duration::from_secs(10)).await;
        programs.reaches(1).await;
        client.received();
        client.tool("touch").await;
        loop {
            let received = client.receive().await;
            if received["params"]["uri"] == "note://1" {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_subscription_is_refused_by_the_relay() {
    let front = world::front(&Programs::default().relay().await);
    let mut client = Client::open(&front, R4, everything()).await;
    let refused = client.call("resources/subscribe", json!({"uri": "note://secret"})).await;
    assert_eq!(refused["error"]["message"], "`note://secret` is secret", "{refused}");
    // Of several resources the others are watched.
    let mut nobody = Raw::new(&front);
    let wanted = json!({"notifications": {"resourceSubscriptions": ["note://secret", "note://1"]}});
    nobody.request("subscriptions/listen", modern(wanted, json!({}))).await;
    let acknowledged = nobody.recv().await;
    assert_eq!(
        acknowledged["params"]["notifications"]["resourceSubscriptions"],
        json!(["note://1"]),
        "{acknowledged}"
    );
}

/// A list is requested while the program waits for an answer of its client.
#[tokio::test(start_paused = true)]
async fn a_list_during_a_question_does_not_take_it_over() {
    let front = world::front(&Programs::default().relay().await);
    let mut client = Client::open(&front, world::ERAS[1], everything()).await;
    client.answer = Box::new(world::answer);
    client.call("tools/list", json!({})).await;
    let asked = client.send("tools/call", json!({"name": "ask"})).await;
    let listed = client.send("tools/list", json!({})).await;
    let answers = [client.recv().await, client.recv().await];
    let answer = |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(count(answer(listed)), 4);
    assert_eq!(answer(asked)["result"]["resultType"], "input_required", "{answers:?}");
}
