//! Targets that are replaced while others use them.

use std::sync::Mutex;

use pintle::{
    Client, Server,
    server::{Access, Decision, Entry, GateRequest, tool},
};

use super::{tests::backend as connected, *};

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
