//! The connection of a target changes: the next one is opened first, and then takes its place.

use std::{io::Read as _, process::Command};

use pintle::{Server, client::Mode, server::tool};
use tokio::{sync::oneshot, time::timeout};

use super::used_until;
use crate::{
    gateway::{connect, gateway, names, target},
    support::{PATIENCE, machine::Machine},
};

/// The tools of a program: what it was started with, and the same after somebody has opened a gate.
const TOOLS: &str = r#"
[tools.who]
command = ["printenv", "WHO"]
inherit = ["WHO"]

[tools.wait]
command = ["sh", "-c", "cat begun && cat gate && printenv WHO"]
inherit = ["WHO"]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn new_calls_reach_the_next_program_and_running_ones_end_where_they_began() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let machine = Machine::new(&format!("gateway-connections-{mode:?}"));
        machine.write("tools.toml", TOOLS);
        for fifo in ["begun", "gate", "alive-old", "alive-new"] {
            assert!(Command::new("mkfifo").arg(machine.path(fifo)).status().unwrap().success());
        }
        // It has no writer any more when all programs that were started with this name have ended.
        let ended = |name: &str| {
            let path = machine.path(&format!("alive-{name}"));
            in_thread(move || std::fs::File::open(path).unwrap().read_to_string(&mut String::new()).unwrap())
        };
        let (mut old, _new) = (ended("old"), ended("new"));
        let program = env!("CARGO_BIN_EXE_pintle");
        let file = |who: &str| {
            format!(
                "[targets.a]\ncommand = [\"sh\", \"-c\", \"exec 3>alive-$WHO; exec {program} serve tools.toml\"]\nenv = {{ WHO = \"{who}\" }}\n"
            )
        };
        let gateway = gateway(&machine, &file("old"));
        let client = connect(&gateway.url, "alice-token", mode).await;
        names(&client, |names| names.iter().any(|name| name == "a_wait")).await;
        let running = tokio::spawn({
            let client = client.clone();
            async move { client.call_tool("a_wait", ()).await.unwrap().text() }
        });
        let (begun, gate) = (machine.path("begun"), machine.path("gate"));
        // Opening a pipe waits for who reads it.
        in_time(in_thread(move || std::fs::write(begun, "").unwrap())).await;
        machine.write("team.toml", &file("new"));
        let mut texts = used_until(&client, "a_who", |text, _| text.trim() == "new").await;
        assert_eq!(texts.pop().unwrap().trim(), "new");
        assert!(texts.iter().all(|text| text.trim() == "old"), "{texts:?}");
        assert_eq!(client.call_tool("a_who", ()).await.unwrap().text().trim(), "new");
        assert!(!running.is_finished() && old.try_recv().is_err(), "{mode:?}");
        in_time(in_thread(move || std::fs::write(gate, "").unwrap())).await;
        assert_eq!(running.await.unwrap().trim(), "old", "{mode:?}");
        in_time(old).await;
    }
}

/// Runs a function that may wait for ever, beside the test.
fn in_thread<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    std::thread::spawn(move || done.send(run()));
    result
}

async fn in_time<T>(result: oneshot::Receiver<T>) -> T {
    timeout(PATIENCE, result).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_cannot_be_connected_as_it_is_now_is_served_as_before() {
    let serve = async |text: &'static str| {
        Server::new("x", "0").tool(tool("work", move || async move { text })).serve_http("127.0.0.1:0").await
    };
    let (before, after) = (serve("before").await.unwrap(), serve("after").await.unwrap());
    let machine = Machine::new("gateway-connections-down");
    let gateway = gateway(&machine, &target("a", before.address()));
    let client = connect(&gateway.url, "alice-token", Mode::Modern).await;
    names(&client, |names| !names.is_empty()).await;
    machine.write("team.toml", "[targets.a]\ncommand = [\"/no/such/program\"]\n");
    let line = gateway.printed("`a` cannot be connected").await;
    assert!(line.ends_with("; it is served as before until it can be"), "{line}");
    assert_eq!(client.call_tool("a_work", ()).await.unwrap().text(), "before");
    // What hides a tool does so at once.
    let hidden = "[targets.a]\ncommand = [\"/no/such/program\"]\nhide = [\"work\"]\n";
    machine.write("team.toml", hidden);
    assert!(names(&client, |names| names.is_empty()).await.is_empty());
    machine.write("team.toml", &target("a", after.address()));
    names(&client, |names| !names.is_empty()).await;
    used_until(&client, "a_work", |text, _| text == "after").await;
    // A file that takes a login or a secret away is followed at once.
    let secret = "headers = { X-Key = { env = \"ALICE\" } }\n";
    machine.write("team.toml", &(target("a", after.address()) + secret));
    gateway.printed_times("has changed, and is in use now", 4).await;
    machine.write("team.toml", "[targets.a]\ncommand = [\"/no/such/program\"]\n");
    gateway.printed_times("has changed, and is in use now", 5).await;
    let down = client.call_tool("a_work", ()).await.unwrap_err().to_string();
    assert!(down.contains("the backend `a` has been down for"), "{down}");
}
