//! What is offered of a target changes, and its connections stay.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    client::Mode,
    server::{Cx, ToolError, tool},
};

use super::used_until;
use crate::{
    gateway::{connect, gateway, target},
    support::machine::Machine,
};

/// A server that counts the calls of a session.
fn counting() -> Server {
    let count = tool("count", |cx: Cx| async move {
        let session = cx.session().ok_or("there is no session")?;
        let calls = session.get_or_insert_with(|| Arc::new(AtomicUsize::new(0)))?;
        Ok::<_, ToolError>((calls.fetch_add(1, Ordering::SeqCst) + 1).to_string())
    });
    Server::new("counting", "0").tool(count).tool(tool("other", || async { "" }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_what_is_offered_fails_no_call_and_keeps_the_sessions_of_the_target() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let serving = counting().serve_http("127.0.0.1:0").await.unwrap();
        let machine = Machine::new(&format!("gateway-offers-{mode:?}"));
        let file = target("a", serving.address()) + "era = \"session\"\n";
        let gateway = gateway(&machine, &file);
        let client = connect(&gateway.url, "alice-token", mode).await;
        for (more, name, is_there) in [
            ("tools.count.description = \"It counts on.\"\n", "a_other", true),
            (
                "tools.count.description = \"It counts on.\"\nhide = [\"other\"]\nmax_result_bytes = 99\n",
                "a_other",
                false,
            ),
        ] {
            machine.write("team.toml", &format!("{file}{more}"));
            let first: usize = client.call_tool("a_count", ()).await.unwrap().text().parse().unwrap();
            let counts = used_until(&client, "a_count", |_, tools| {
                let count = tools.iter().find(|tool| tool.name == "a_count").unwrap();
                count.description.is_some() && tools.iter().any(|tool| tool.name == name) == is_there
            });
            let counts = counts.await;
            let expected = (first + 1..=first + counts.len()).map(|count| count.to_string());
            assert!(counts.iter().cloned().eq(expected), "{mode:?}: {counts:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_prefix_is_another_name_in_the_same_session() {
    let serving = counting().serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-offers-prefix");
    let file = target("a", serving.address()) + "era = \"session\"\n";
    let gateway = gateway(&machine, &file);
    let client = connect(&gateway.url, "alice-token", Mode::Legacy).await;
    assert_eq!(client.call_tool("a_count", ()).await.unwrap().text(), "1");
    machine.write("team.toml", &format!("{file}prefix = \"b\"\n"));
    super::super::names(&client, |names| names.iter().any(|name| name == "b_count")).await;
    assert_eq!(client.call_tool("b_count", ()).await.unwrap().text(), "2");
    let gone = client.call_tool("a_count", ()).await.unwrap_err().to_string();
    assert!(gone.contains("no such tool"), "{gone}");
}
