//! What the first client of a gateway is told of its targets, before anybody has listed anything.

use pintle::{Server, client::Mode, server::tool};
use pintle_tasks::Tasks;

use super::{connect, gateway, target};
use crate::support::machine::Machine;

/// A server with instructions and tasks, whose names no host accepts, on two pages.
fn paged(name: &str) -> Server {
    let tools = ["a.b", "a.c"].map(|name| tool(name, || async { "" }).task("optional"));
    Server::new(name, "0")
        .instructions(format!("Use the {name}."))
        .with(Tasks::new())
        .tools(tools)
        .page_size(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_client_is_notified_of_the_targets_of_which_it_sees_something() {
    let desk = paged("desk").serve_http("127.0.0.1:0").await.unwrap();
    let vault = paged("vault").serve_http("127.0.0.1:0").await.unwrap();
    let rules = r#"
        [servers.small]
        default = "allow"

        [[rules]]
        principals = ["BOB"]
        backends = ["vault"]
        decision = "hide"

        [[rules]]
        decision = "allow"
        "#;
    let machine = Machine::new("gateway-declared");
    let file = target("desk", desk.address()) + &target("vault", vault.address()) + rules;
    let gateway = gateway(&machine, &file);
    for mode in [Mode::Legacy, Mode::Modern] {
        for path in ["", "/desk", "/small"] {
            let bob = connect(&format!("{}{path}", gateway.url), "bob-token", mode).await;
            let (notified, can) = (bob.instructions().unwrap_or_default(), bob.capabilities());
            assert!(
                notified.contains("Use the desk.") && !notified.contains("vault"),
                "{mode:?} {path}: {notified}"
            );
            assert!(can.tasks.is_some() || can.extensions.is_some(), "{mode:?} {path}: {can:?}");
        }
        let vault = format!("{}/vault", gateway.url);
        let bob = connect(&vault, "bob-token", mode).await;
        let (notified, can) = (bob.instructions(), bob.capabilities());
        assert!(
            notified.is_none() && can.tasks.is_none() && can.extensions.is_none(),
            "{notified:?} {can:?}"
        );
        let alice = connect(&vault, "alice-token", mode).await;
        assert!(alice.instructions().is_some_and(|notified| notified.contains("Use the vault.")), "{mode:?}");
    }
}
