//! What clients keep for a gateway, after a restart of it.

use std::process::Command;

use pintle::{
    Client, Connection, Error, Server,
    client::{Answer, Mode, SuspendedCall, http::Http},
    server::tool,
    types::RpcError,
};
use pintle_tasks::{TaskPolling, TaskRequests as _, Tasks};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    gateway::{target, tasks::start},
    support::{HttpServing, machine::Machine, pintle, run},
};

fn command(machine: &Machine) -> Command {
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", "127.0.0.1:0", "--bearer-env", "ALICE"]);
    command.args(["--bearer-env", "BOB"]).env("ALICE", "alice-token").env("BOB", "bob-token");
    command.current_dir(machine.path("")).env("PINTLE_STATE_DIR", machine.path("state"));
    command
}

async fn connect(gateway: &HttpServing, path: &str, token: &str) -> Connection {
    let client = Client::new("host", "1.0.0").mode(Mode::Modern).with(TaskPolling::new());
    let client = client.on_elicit(|_| async { Err::<Answer, _>(RpcError::internal("later")) });
    client.connect(Http::new(format!("{}{path}", gateway.url)).unwrap().bearer(token).unwrap()).await.unwrap()
}

async fn suspended(client: &Connection, name: &str) -> SuspendedCall {
    match client.call(name).suspendable().send().await {
        Err(Error::Suspended(call)) => *call,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_states_of_clients_are_those_of_their_principals_after_a_restart() {
    let (release, released) = watch::channel(false);
    let bake = tool("bake", move || {
        let mut released = released.clone();
        async move {
            released.wait_for(|released| *released).await.unwrap();
            "bread"
        }
    });
    let oven = Server::new("oven", "0").with(Tasks::new()).tool(bake.task("optional"));
    let oven = oven.tool(tool("sell", || async { "sold" })).serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-restart");
    let rules =
        "[[rules]]\ntools = [\"oven_sell\"]\ndecision = \"confirm\"\n[[rules]]\ndecision = \"allow\"\n";
    machine.write("team.toml", &format!("{}{rules}", target("oven", oven.address())));
    let gateway = HttpServing::of(command(&machine));
    let alice = connect(&gateway, "", "alice-token").await;
    let task = start(&alice, "oven_bake").await;
    let sale = suspended(&alice, "oven_sell").await;
    drop((gateway, alice));

    let gateway = HttpServing::of(command(&machine));
    release.send(true).unwrap();
    for (path, token) in [("", "bob-token"), ("/oven", "alice-token")] {
        let other = connect(&gateway, path, token).await;
        let refused = other.task(task.id()).await.unwrap_err().to_string();
        assert!(refused.contains("no such task"), "{path}: {refused}");
    }
    let alice = connect(&gateway, "", "alice-token").await;
    assert_eq!(alice.task(task.id()).await.unwrap().result().await.unwrap().text(), "bread");
    let answers = [(&*sale.requests[0].key, json!({"action": "accept", "content": {}}))];
    let sold = alice.resume(&sale, answers).unwrap().await.unwrap();
    assert!(sold.as_str().contains("sold"), "{sold:?}");
}

#[cfg(unix)]
#[test]
fn a_key_that_cannot_be_used_is_an_error_and_one_that_cannot_be_kept_a_warning() {
    let machine = Machine::new("gateway-key");
    machine.write("team.toml", "[targets.one]\nserver = \"demo\"\n");
    machine.write("key", "0f0f");
    let refused = run(command(&machine).args(["--key-file", "key"]));
    assert!(refused.stderr.contains("the key in `key` cannot be used: others can read it"), "{refused:?}");
    assert!(refused.stderr.contains("chmod 600 key"), "{refused:?}");
    let both = run(command(&machine).args(["--key-file", "key", "--redis", "redis://127.0.0.1/"]));
    assert!(both.stderr.contains("--key-file") && both.code == Some(1), "{both:?}");
    let mut on_streams = pintle();
    on_streams.args(["gateway", "team.toml", "--key-file", "key"]).current_dir(machine.path(""));
    let on_streams = run(&mut on_streams);
    assert!(on_streams.stderr.contains("`--key-file` is an option of `--http`"), "{on_streams:?}");
}

/// A container may have no place of its own that can be written.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gateway_without_a_place_for_its_key_starts_and_says_what_ends_with_it() {
    let machine = Machine::new("gateway-keyless");
    machine.write("team.toml", "[targets.one]\nserver = \"demo\"\n");
    let mut command = command(&machine);
    let gateway = HttpServing::of({
        command.env("PINTLE_STATE_DIR", "/dev/null/state");
        command
    });
    gateway.printed("end with this process: set `PINTLE_STATE_DIR`, or use `--key-file`").await;
}
