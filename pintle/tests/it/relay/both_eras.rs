//! A server that has both eras, behind a relay: a client gets the one that it has itself.

use pintle::{
    Client, Server,
    client::Mode,
    relay::Relay,
    server::{Cx, resource, tool},
};
use serde_json::json;

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
async fn each_client_hears_of_a_change_once() {
    let front = world::front(&relay(Mode::Auto).await);
    let mut clients =
        [EraClient::open(&front, R4, json!({})).await, EraClient::open(&front, R5, json!({})).await];
    for client in &mut clients {
        client.listen(&["note://1"]).await;
    }
    assert_eq!(clients[1].tool("touch").await, "touched");
    for client in &mut clients {
        assert_eq!(client.hear().await["method"], "notifications/resources/updated");
        client.tool("era").await;
        assert_eq!(client.heard(), Vec::<serde_json::Value>::new());
    }
}
