//! A server that has both eras, behind a relay: a client gets the one that it has itself.

use std::time::Duration;

use pintle::{
    Client, Server,
    client::Mode,
    server::{Cx, Next, around, resource, tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::world;
use crate::support::eras::{Client as EraClient, R4, R5};

/// Says in which era it was called.
fn behind() -> Server {
    let era =
        tool("era", |cx: Cx| async move { if cx.session().is_some() { "session" } else { "stateless" } });
    let touch = tool("touch", |cx: Cx| async move {
        cx.server().resource_updated("note://1");
        "touched"
    });
    let note = resource("note://1", "one", || async { "first" });
    Server::new("dice", "1.0.0").may_change().tool(era).tool(touch).resource(note)
}

/// The number of programs that run.
#[derive(Clone, Default)]
struct Programs(watch::Sender<usize>);

struct Running(Programs);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl Programs {
    /// A server as in a process of its own.
    fn start(&self) -> Server {
        self.0.send_modify(|count| *count += 1);
        let running = Running(self.clone());
        behind().layer(&around(move |cx: Cx, next: Next| {
            let _ = &running;
            next.run(cx)
        }))
    }

    async fn relay(&self) -> Relay {
        let programs = self.clone();
        let connector = move || {
            let connected = programs.start().in_process().map_err(std::io::Error::other);
            async { connected }
        };
        Relay::connect(Client::new("relay", "1.0.0").mode(Mode::Auto), connector).await.unwrap()
    }

    async fn reaches(&self, count: usize) {
        let mut running = self.0.subscribe();
        let reached =
            tokio::time::timeout(Duration::from_secs(20), running.wait_for(|now| *now == count)).await;
        assert!(reached.is_ok(), "{} instead of {count}", *self.0.borrow());
    }
}

async fn relay(mode: Mode) -> Relay {
    let behind = behind();
    let connector = move || {
        let connected = behind.in_process().map_err(std::io::Error::other);
        async { connected }
    };
    Relay::connect(Client::new("relay", "1.0.0").mode(mode), connector).await.unwrap()
}

#[tokio::test]
async fn eras_are_paired_alike_unless_one_is_chosen() {
    for (mode, of_sessions, of_others) in [
        (Mode::Auto, "session", "stateless"),
        (Mode::Legacy, "session", "session"),
        (Mode::Modern, "stateless", "stateless"),
    ] {
        let front = world::front(&relay(mode).await);
        let mut session = EraClient::open(&front, R4, json!({})).await;
        let mut stateless = EraClient::open(&front, R5, json!({})).await;
        for _ in 0..2 {
            assert_eq!(session.tool("era").await, of_sessions, "{mode:?}");
            assert_eq!(stateless.tool("era").await, of_others, "{mode:?}");
        }
    }
}

#[tokio::test]
async fn those_who_share_one_connection_have_its_era() {
    let front = world::front(&relay(Mode::Auto).await.share_connection());
    for revision in [R4, R5] {
        let mut client = EraClient::open(&front, revision, json!({})).await;
        assert_eq!(client.tool("era").await, "stateless", "{revision}");
    }
}

#[tokio::test]
async fn each_client_is_notified_of_a_change_once() {
    let front = world::front(&relay(Mode::Auto).await);
    let mut clients =
        [EraClient::open(&front, R4, json!({})).await, EraClient::open(&front, R5, json!({})).await];
    for client in &mut clients {
        client.listen(&["note://1"]).await;
    }
    assert_eq!(clients[1].tool("touch").await, "touched");
    for client in &mut clients {
        assert_eq!(client.receive().await["method"], "notifications/resources/updated");
        client.tool("era").await;
        assert_eq!(client.received(), Vec::<Value>::new());
    }
}

/// The program that told what the server offers is not kept for clients that do not come.
#[tokio::test(start_paused = true)]
async fn a_program_runs_once_for_each_session_and_once_more_only_for_others() {
    let programs = Programs::default();
    let front = world::front(&programs.relay().await);
    programs.reaches(1).await;
    let mut sessions = Vec::new();
    for count in 1..=2 {
        let mut client = EraClient::open(&front, R4, json!({})).await;
        client.listen(&["note://1"]).await;
        assert_eq!(client.tool("era").await, "session");
        programs.reaches(count).await;
        sessions.push(client);
    }
    // One without a session hears of changes from its acknowledgement on.
    let mut others = Vec::new();
    for _ in 0..2 {
        let mut client = EraClient::open(&front, R5, json!({})).await;
        client.listen(&["note://1"]).await;
        assert_eq!(client.tool("touch").await, "touched");
        assert_eq!(client.receive().await["params"]["uri"], "note://1");
        programs.reaches(3).await;
        others.push(client);
    }
    assert_eq!(others[0].receive().await["params"]["uri"], "note://1");
    for client in &mut sessions {
        assert_eq!(client.tool("touch").await, "touched");
        assert_eq!(client.receive().await["params"]["uri"], "note://1");
        assert_eq!(client.received(), Vec::<Value>::new());
    }
}
