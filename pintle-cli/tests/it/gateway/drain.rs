//! The end of a gateway: running calls complete, new ones are refused.

#![cfg(unix)]

use std::process::Command;

use pintle::{
    Client, Server,
    client::{Mode, http::Http},
    server::tool,
};
use tokio::sync::{mpsc, watch};

use crate::support::{HttpServing, PATIENCE, machine::Machine, pintle};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn running_calls_complete_and_new_ones_are_refused_when_it_is_terminated() {
    // A tool that returns when the test says so.
    let (release, released) = watch::channel(false);
    let (begun, mut begins) = mpsc::channel(4);
    let wait = tool("wait", move || {
        let (mut released, begun) = (released.clone(), begun.clone());
        async move {
            begun.send(()).await.unwrap();
            released.wait_for(|released| *released).await.unwrap();
            "done"
        }
    });
    let serving = Server::new("slow", "0").tool(wait).serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-drain");
    let file = super::target("slow", serving.address());
    machine.write("team.toml", &file);
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0"]).current_dir(machine.path(""));
    let mut gateway = HttpServing::of(command);
    let client = Client::new("host", "1.0.0").mode(Mode::Modern);
    let one = client.connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    let other = client.connect(Http::new(&gateway.url).unwrap()).await.unwrap();
    let running = tokio::spawn(async move { one.call_tool("slow_wait", ()).await });
    begins.recv().await.unwrap();
    assert!(Command::new("kill").arg(gateway.id().to_string()).status().unwrap().success());
    gateway.printed("ending: new calls are refused").await;
    let ready = super::page(&gateway, "/ready", "");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("it is ending"), "{ready}");
    // From about then on, and never handled.
    let mut refused = None;
    for _ in 0..1000 {
        let called = tokio::time::timeout(PATIENCE, other.call_tool("slow_nothing", ())).await.unwrap();
        let error = called.unwrap_err().to_string();
        if !error.contains("no such tool") {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("new calls are refused");
    assert!(refused.contains("shut") || refused.contains("503"), "{refused}");
    assert!(!running.is_finished(), "the running call goes on");
    release.send(true).unwrap();
    assert_eq!(running.await.unwrap().unwrap().text(), "done");
    assert_eq!(gateway.exit_code(), Some(0));
}
