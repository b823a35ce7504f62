//! How connections are opened, and what is said when they are not.

use std::time::Duration;

use pintle::{
    Client, Error,
    client::{Mode, OpenError, Reconnect},
    transport::Memory,
};
use pintle_testing::Peer;
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use crate::support::scripted_server::{BOTH, SESSION, STATELESS, accept, client, open, text};

#[tokio::test(start_paused = true)]
async fn a_server_of_either_era_describes_itself() {
    for revision in BOTH {
        let (server, _peer) = open(&client(), revision, json!({"tools": {"listChanged": true}})).await;
        assert_eq!(server.revision().as_str(), revision);
        assert_eq!(server.server_info().unwrap().name, "played");
        assert_eq!(server.instructions().as_deref(), Some("Be kind."));
        assert_eq!(server.capabilities().tools.unwrap().list_changed, Some(true));
        assert_eq!(server.verdict().to_string(), revision);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_saves_the_probe() {
    let (server, _peer) = open(&client(), SESSION, json!({})).await;
    let client = client().remember(server.verdict());
    let (mut peer, transport) = Peer::new();
    let script = async {
        let hello = peer.receives("initialize").await;
        assert_eq!(hello["params"]["clientInfo"], json!({"name": "test", "version": "1"}));
        peer.answers(&hello, json!({"protocolVersion": SESSION, "capabilities": {}})).await;
        peer.receives("notifications/initialized").await;
    };
    let (server, ()) = tokio::join!(client.connect(transport), script);
    assert_eq!(server.unwrap().revision().as_str(), SESSION);
}

#[tokio::test(start_paused = true)]
async fn one_client_opens_many_connections() {
    let client = client();
    let (one, mut one_peer) = open(&client, SESSION, json!({})).await;
    let (other, mut other_peer) = open(&client, STATELESS, json!({})).await;
    for (server, peer, message) in [(one, &mut one_peer, "one"), (other, &mut other_peer, "other")] {
        let script = async {
            let call = peer.receives("tools/call").await;
            peer.answers(&call, text(message)).await;
        };
        let (result, ()) = tokio::join!(server.call_tool("t", json!({})), script);
        assert_eq!(result.unwrap().content[0].as_text(), Some(message));
    }
    // A connection knows its client, which opens another one.
    let (first, _peer) = open(&client, STATELESS, json!({})).await;
    let (third, mut third_peer) = open(&first.client(), STATELESS, json!({})).await;
    let script = async {
        let call = third_peer.receives("tools/call").await;
        third_peer.answers(&call, text("third")).await;
    };
    let (result, ()) = tokio::join!(third.call_tool("t", json!({})), script);
    assert_eq!(result.unwrap().content[0].as_text(), Some("third"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_probe_is_asked_the_old_way() {
    let (mut peer, transport) = Peer::new();
    let started = Instant::now();
    let script = async {
        let probe = peer.receives("server/discover").await;
        let hello = peer.receives("initialize").await;
        // Its answer to the probe comes too late to matter.
        peer.refuses(&probe, -32601, "what?").await;
        peer.answers(&hello, json!({"protocolVersion": SESSION, "capabilities": {}})).await;
        peer.receives("notifications/initialized").await;
    };
    let client = client();
    let (server, ()) = tokio::join!(client.connect(transport), script);
    assert_eq!(server.unwrap().revision().as_str(), SESSION);
    assert_eq!(started.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_probe_is_heeded() {
    let discovered = || {
        json!({
            "resultType": "complete", "supportedVersions": [STATELESS], "capabilities": {}, "ttlMs": 0,
            "cacheScope": "private"
        })
    };
    // A server that starts slowly reads both requests then: it is not an old one.
    for answers_the_handshake in [true, false] {
        let (mut peer, transport) = Peer::new();
        let script = async {
            let probe = peer.receives("server/discover").await;
            let hello = peer.receives("initialize").await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            peer.answers(&probe, discovered()).await;
            if answers_the_handshake {
                peer.answers(&hello, json!({"protocolVersion": SESSION, "capabilities": {}})).await;
            }
            let call = peer.receives("tools/call").await;
            peer.answers(&call, text("done")).await;
        };
        let client = client();
        let ((), ()) = tokio::join!(
            async {
                let server = client.connect(transport).await.unwrap();
                assert_eq!(server.revision().as_str(), STATELESS);
                server.call_tool("t", ()).await.unwrap();
            },
            script
        );
    }
    // The handshake decides if it was answered first, or the probe says nothing new.
    let (mut peer, transport) = Peer::new();
    let script = async {
        let probe = peer.receives("server/discover").await;
        let hello = peer.receives("initialize").await;
        peer.answers(&probe, json!({"supportedVersions": [SESSION], "resultType": "complete"})).await;
        peer.answers(&hello, json!({"protocolVersion": SESSION, "capabilities": {}})).await;
        peer.receives("notifications/initialized").await;
        peer.answers(&probe, discovered()).await;
        let call = peer.receives("tools/call").await;
        assert_eq!(call["params"].get("_meta"), None);
        peer.answers(&call, text("done")).await;
    };
    let client = client();
    let ((), ()) = tokio::join!(
        async {
            let server = client.connect(transport).await.unwrap();
            assert_eq!(server.revision().as_str(), SESSION);
            server.call_tool("t", ()).await.unwrap();
        },
        script
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_called_silent() {
    let (_peer, transport) = Peer::new();
    let started = Instant::now();
    let error = client().connect(transport).await.unwrap_err();
    assert!(matches!(error, Error::Open { error: OpenError::Silent { method: "initialize" }, seen: None }));
    assert_eq!(started.elapsed().as_secs(), 18);
}

#[tokio::test(start_paused = true)]
async fn without_another_way_a_server_has_as_long_as_for_a_handshake() {
    let (_peer, transport) = Peer::new();
    let started = Instant::now();
    let error = client().mode(Mode::Modern).connect(transport).await.unwrap_err();
    assert!(matches!(error, Error::Open { error: OpenError::Silent { method: "server/discover" }, .. }));
    assert_eq!(started.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_noisy_server_is_called_noisy() {
    let (mut peer, transport) = Peer::new();
    peer.prints("Listening on port 80").await;
    peer.prints("warning: [] is not {}").await;
    let (noise, mut received) = mpsc::unbounded_channel();
    let client = client().on_noise(move |line| noise.send((*line).to_owned()).unwrap());
    let error = client.connect(transport).await.unwrap_err().to_string();
    assert!(error.starts_with("the server did not answer `initialize`"), "{error}");
    assert!(
        error.ends_with(
            "(it printed 2 lines that are not messages, the first of them `Listening on port 80`)"
        ),
        "{error}"
    );
    assert_eq!(received.recv().await.unwrap(), "Listening on port 80");
}

#[tokio::test(start_paused = true)]
async fn a_noisy_server_that_answers_is_used() {
    let (mut peer, transport) = Peer::new();
    peer.prints("Listening on port 80").await;
    let client = client();
    let (server, ()) = tokio::join!(client.connect(transport), accept(&mut peer, SESSION, json!({})));
    let server = server.unwrap();
    let script = async {
        let call = peer.receives("tools/call").await;
        peer.prints("about to answer").await;
        peer.answers(&call, text("a")).await;
    };
    let (result, ()) = tokio::join!(server.call_tool("t", json!({})), script);
    assert!(result.is_ok());
    assert_eq!(server.noise(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_quoted() {
    let (mut peer, transport) = Peer::new();
    let script = async {
        let probe = peer.receives("server/discover").await;
        peer.refuses(&probe, -32601, "what?").await;
        let hello = peer.receives("initialize").await;
        peer.refuses(&hello, -32603, "no licence").await;
    };
    let client = client();
    let (error, ()) = tokio::join!(client.connect(transport), script);
    assert_eq!(error.unwrap_err().to_string(), "the server refused `initialize`: no licence (-32603)");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_is_distinguished() {
    let (mut peer, transport) = Peer::new();
    let client = client();
    let script = async {
        peer.receives("server/discover").await;
        drop(peer);
    };
    let (error, ()) = tokio::join!(client.connect(transport), script);
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::Open { error: OpenError::Exited { method: "server/discover" }, .. }),
        "{error}"
    );
}

/// Connects to one played server after the other.
async fn redial(peers: Vec<Memory>) -> Reconnect<impl pintle::client::Connector<Transport = Memory>> {
    let mut peers = peers.into_iter();
    Reconnect::connect(move || {
        std::future::ready(peers.next().ok_or(std::io::ErrorKind::ConnectionRefused.into()))
    })
    .await
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_the_probe_kills_is_started_again() {
    let ((mut first, one), (mut second, two)) = (Peer::new(), Peer::new());
    let script = async {
        first.receives("server/discover").await;
        drop(first);
        let hello = second.receives("initialize").await;
        second.answers(&hello, json!({"protocolVersion": SESSION, "capabilities": {}})).await;
        second.receives("notifications/initialized").await;
    };
    let (client, transport) = (client(), redial(vec![one, two]).await);
    let (server, ()) = tokio::join!(client.connect(transport), script);
    assert_eq!(server.unwrap().revision().as_str(), SESSION);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_opened_again_in_either_era() {
    for revision in BOTH {
        let ((mut first, one), (mut second, two)) = (Peer::new(), Peer::new());
        let (client, transport) = (client(), redial(vec![one, two]).await);
        let (server, ()) = tokio::join!(client.connect(transport), accept(&mut first, revision, json!({})));
        let server = server.unwrap();
        let script = async {
            first.receives("tools/call").await;
            drop(first);
        };
        let (lost, ()) = tokio::join!(server.call_tool("t", json!({})), script);
        assert!(matches!(lost.unwrap_err(), Error::Closed(_)));
        let script = async {
            if revision == SESSION {
                let hello = second.receives("initialize").await;
                second.answers(&hello, json!({"protocolVersion": revision, "capabilities": {}})).await;
                second.receives("notifications/initialized").await;
            }
            let call = second.receives("tools/call").await;
            second.answers(&call, text("again")).await;
        };
        let (result, ()) = tokio::join!(server.call_tool("t", json!({})), script);
        assert_eq!(result.unwrap().content[0].as_text(), Some("again"));
        // There is no third.
        drop(second);
        assert_eq!(server.wait().await, pintle::Ended::ByPeer { known: None });
        assert!(matches!(server.call_tool("t", json!({})).await.unwrap_err(), Error::Closed(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_mode_is_kept_to() {
    let (mut peer, transport) = Peer::new();
    let client = Client::new("test", "1").mode(Mode::Modern);
    let script = async {
        let probe = peer.receives("server/discover").await;
        peer.refuses(&probe, -32601, "what?").await;
        assert_eq!(peer.next().await, None);
    };
    let (error, ()) = tokio::join!(client.connect(transport), script);
    assert!(matches!(error.unwrap_err(), Error::Open { error: OpenError::TooOld { .. }, .. }));
}

#[tokio::test(start_paused = true)]
async fn log_messages_that_come_before_the_handshake_are_not_lost() {
    let (sender, mut logged) = mpsc::unbounded_channel();
    let client = client().mode(Mode::Legacy).on_log(move |log| sender.send(log.data.clone()).unwrap());
    let (mut peer, transport) = Peer::new();
    let script = async {
        let hello = peer.receives("initialize").await;
        peer.notifies("notifications/message", json!({"level": "info", "data": "starting"})).await;
        peer.notifies("notifications/progress", json!({"progressToken": 7, "progress": 1})).await;
        peer.notifies("notifications/tools/list_changed", json!({})).await;
        peer.answers(&hello, json!({"protocolVersion": SESSION, "capabilities": {}})).await;
        peer.receives("notifications/initialized").await;
    };
    let (server, ()) = tokio::join!(client.connect(transport), script);
    let _server = server.unwrap();
    let data = tokio::time::timeout(Duration::from_secs(1), logged.recv()).await;
    assert_eq!(data.expect("a log message").unwrap(), json!("starting"));
}
