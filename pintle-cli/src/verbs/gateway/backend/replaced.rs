//! Targets that are replaced while others use them.

use std::sync::Mutex;

use pintle::{
    Client, Server,
    client::{Change, Event, Mode},
    server::{Access, Decision, Entry, GateRequest, resource, tool},
};
use tokio::time::timeout;

use super::{
    tests::{backend as connected, offer, relay},
    *,
};

/// The file changes after the gates have judged a call.
#[tokio::test]
async fn what_was_judged_is_what_runs() {
    let work = |description: &str, text: &'static str| {
        Server::new("one", "0").tool(tool("work", move || async move { text }).description(description))
    };
    let backend = connected("one", work("It reads.", "read")).await;
    let next = connected("one", work("It writes.", "wrote")).await.state();
    let (reloaded, next) = (backend.clone(), Mutex::new(Some(next)));
    let gateway = Server::new("gateway", "0").provider(backend).gate(move |request: &GateRequest<'_>| {
        let Entry::Tool(judged) = request.entry else { return Decision::Allow };
        if request.access == Access::Call
            && let Some(next) = next.lock().unwrap().take()
        {
            reloaded.set(next);
        }
        match judged.description.as_deref() {
            Some("It reads.") => Decision::Allow,
            _ => Decision::Deny("it writes".to_owned()),
        }
    });
    let client = Client::new("client", "0").connect(gateway.in_process().unwrap()).await.unwrap();
    client.tools().await.unwrap();
    assert_eq!(client.call_tool("one_work", ()).await.unwrap().text(), "read");
    let denied = client.call_tool("one_work", ()).await.unwrap_err().to_string();
    assert!(denied.contains("it writes"), "{denied}");
}

#[tokio::test]
async fn a_target_that_was_replaced_meanwhile_is_not_offered() {
    let backend = connected("one", Server::new("one", "0").tool(tool("old", || async { "" }))).await;
    let number = backend.replace();
    assert!(backend.is_up(), "a target that is ready takes its place without a gap");
    backend.fail(number, "the next one cannot be connected yet".to_owned());
    assert!(backend.is_up(), "nor does one that is not ready");
    backend.wait(number);
    backend.fail(0, "an attempt for the target before".to_owned());
    assert!(!backend.has_target(0) && backend.has_target(number) && !backend.is_up());
    let BackendState::Down(outage) = backend.state() else { panic!("it is up") };
    assert_eq!(outage.reason, "it is being connected");
}

#[tokio::test]
async fn another_offer_is_that_of_the_same_connection() {
    let server = Server::new("one", "0").tool(tool("work", || async { "worked" }));
    let backend = connected("one", server).await;
    let gateway = Server::new("gateway", "0").provider(backend.clone());
    let client = Client::new("client", "0").connect(gateway.in_process().unwrap()).await.unwrap();
    assert_eq!(client.call_tool("one_work", ()).await.unwrap().text(), "worked");
    let (BackendState::Up(before), number) = (backend.state(), backend.replace()) else {
        panic!("it is down")
    };
    backend.offer(offer("two"));
    assert_eq!(client.call_tool("two_work", ()).await.unwrap().text(), "worked");
    client.call_tool("one_work", ()).await.unwrap_err();
    let BackendState::Up(after) = backend.state() else { panic!("it is down") };
    assert!(Arc::ptr_eq(&before, &after) && backend.has_target(number));
}

#[tokio::test(start_paused = true)]
async fn what_clients_watch_is_watched_at_the_next_target() {
    // One with sessions is watched in those of the clients.
    let server = || {
        let server = Server::new("one", "0").resource(resource("note://a", "a", || async { "" }));
        server.revisions(["2026-07-28".parse().unwrap()])
    };
    for mode in [Mode::Legacy, Mode::Modern] {
        let (backend, next) = (connected("one", server()).await, server());
        let gateway = Server::new("gateway", "0").provider(backend.clone());
        let client = Client::new("client", "0").mode(mode);
        let client = client.connect(gateway.in_process().unwrap()).await.unwrap();
        let mut changes = client.changes().await.unwrap();
        client.subscribe("note://a").await.unwrap();
        let target = OpenTarget::new(relay(next.clone()).await, backend.offering());
        backend.connect(backend.replace(), Arc::new(target));
        let mut heard = false;
        for _ in 0..100 {
            next.resource_updated("note://a");
            while let Ok(Some(change)) = timeout(Duration::from_millis(10), changes.next()).await {
                heard |= change == Event::Changed(Change::Resource("note://a".into()));
            }
        }
        assert!(heard, "{mode:?}");
    }
}
