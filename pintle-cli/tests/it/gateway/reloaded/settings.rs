//! Settings of the whole gateway that change.

use pintle::{Connection, client::Mode};
use serde_json::json;

use super::MAX_ROUNDS;
use crate::{
    gateway::{connect, ended, gateway, names},
    support::machine::Machine,
};

fn file(settings: &str, of_server: &str) -> String {
    let targets = "[targets.one]\nserver = \"demo\"\nonly = [\"tide\"]\n[servers.small]\n";
    format!("{settings}{targets}{of_server}")
}

async fn call(client: &Connection) {
    client.call_tool("one_tide", json!({"port": "bergen", "hour": 4})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn names_instructions_and_logs_change_and_sessions_go_on() {
    let machine = Machine::new("gateway-settings");
    let first =
        "audit = \"first.jsonl\"\naccess_log = \"first-access.jsonl\"\ninstructions = \"Be quick.\"\n";
    let gateway = gateway(&machine, &file(first, "instructions = \"Be small.\"\n"));
    let session = connect(&gateway.url, "alice-token", Mode::Legacy).await;
    assert_eq!(names(&session, |names| !names.is_empty()).await, ["one_tide"]);
    call(&session).await;
    assert!(session.instructions().unwrap().starts_with("Be quick."));
    let second = "name = \"team\"\ninstructions = \"Be kind.\"\naudit = \"second.jsonl\"\naudit_required = true\n\
                  access_log = \"second-access.jsonl\"\n";
    machine.write("team.toml", &file(second, "instructions = \"Be tiny.\"\n"));
    gateway.printed("has changed, and is in use now").await;
    call(&session).await;
    let says = async |path: &str, mode: Mode| {
        let client = connect(&format!("{}{path}", gateway.url), "alice-token", mode).await;
        (client.server_info().unwrap().name.clone(), client.instructions().unwrap_or_default())
    };
    for mode in [Mode::Legacy, Mode::Modern] {
        for (path, expected) in [("", "Be kind."), ("/one", "Be kind."), ("/small", "Be tiny.")] {
            let (name, instructions) = says(path, mode).await;
            assert_eq!(name, "team", "{path}");
            assert!(instructions.starts_with(expected), "{path}: {instructions}");
        }
    }
    // A log that cannot be opened is a mistake of the file, of which nothing is used then.
    machine.write("team.toml", &file("name = \"other\"\naudit = \"no/such/folder/x\"\n", ""));
    let line = gateway.printed("the log `no/such/folder/x` cannot be written").await;
    assert!(line.ends_with("; the gateway continues with the previous settings"), "{line}");
    assert_eq!(says("", Mode::Modern).await.0, "team");
    machine.write("team.toml", &file("", ""));
    gateway.printed_times("has changed, and is in use now", 2).await;
    let (name, instructions) = says("", Mode::Modern).await;
    assert!(name == "pintle-gateway" && !instructions.contains("Be "), "{instructions}");
    call(&session).await;
    let second = ended(gateway, &machine, "second.jsonl");
    let calls = |log: &str| log.lines().filter(|line| line.contains("\"one_tide\"")).count();
    assert_eq!((calls(&machine.read("first.jsonl")), calls(&second)), (1, 1), "{second}");
    for log in ["first-access.jsonl", "second-access.jsonl"] {
        assert_eq!(calls(&machine.read(log)), 1, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_searched_or_listed_as_the_file_says_at_the_moment() {
    let machine = Machine::new("gateway-settings-search");
    let log = "access_log = \"access.jsonl\"\n";
    let gateway = gateway(&machine, &file(log, ""));
    let whole = connect(&gateway.url, "alice-token", Mode::Modern).await;
    let small = connect(&format!("{}/small", gateway.url), "alice-token", Mode::Modern).await;
    let lists = async |first: &str| {
        for client in [&whole, &small] {
            let mut rounds = 0;
            while client.tools().await.unwrap().first().is_none_or(|tool| tool.name != first) {
                rounds += 1;
                assert!(rounds < MAX_ROUNDS, "`{first}` is not listed");
            }
        }
    };
    lists("one_tide").await;
    for _ in 0..2 {
        machine.write("team.toml", &file(&format!("search = true\n{log}"), "search = true\n"));
        lists("search_tools").await;
        machine.write("team.toml", &file(log, ""));
        lists("one_tide").await;
    }
    call(&whole).await;
    call(&small).await;
    let log = ended(gateway, &machine, "access.jsonl");
    let calls: Vec<_> = log.lines().filter(|line| line.contains("\"one_tide\"")).collect();
    assert_eq!(calls.len(), 2, "each is logged once: {calls:?}");
}
