//! Virtual servers, and paths that come and go with the file.

use pintle::client::Mode;
use serde_json::{Value, json};

use super::{connect, ended, file, gateway, names, page};
use crate::support::machine::Machine;

const SERVERS: &str = r#"
    [servers.sea]
    targets = ["one", "two"]
    instructions = "About the sea."
    hide = ["two_berth"]
    only = ["one_water", "two_*"]
    tools.two_tide = { rename = "ebb", fix = { hour = 4 } }

    [[servers.sea.rules]]
    name = "no boats"
    resources = ["harbour://boats/*"]
    decision = "deny"
    reason = "they have left"

    [[servers.sea.rules]]
    tools = ["one_water"]
    arguments = { port = "bergen" }
    decision = "deny"
    reason = "not for this server"

    [[servers.sea.rules]]
    decision = "allow"

    [servers.find]
    targets = ["two"]
    search = true

    [[rules]]
    name = "not the open sea"
    tools = ["two_tide"]
    arguments = { port = "lerwick" }
    decision = "deny"
    reason = "it is too cold there"

    [[rules]]
    decision = "allow"
"#;

fn has(wanted: &'static [&'static str]) -> impl Fn(&[String]) -> bool {
    move |names| wanted.iter().all(|name| names.iter().any(|known| known == name))
}

#[tokio::test]
async fn a_virtual_server_has_its_own_choice_names_and_rules() {
    let machine = Machine::new("gateway-servers");
    let gateway = gateway(&machine, &file(SERVERS));
    for mode in [Mode::Legacy, Mode::Modern] {
        let sea = connect(&format!("{}/sea", gateway.url), "alice-token", mode).await;
        assert_eq!(names(&sea, has(&["one_water", "ebb"])).await, ["one_water", "ebb"]);
        assert!(sea.instructions().unwrap().contains("About the sea."));
        let ebb = sea.call_tool("ebb", json!({"port": "bergen"})).await.unwrap().text();
        assert!(!ebb.is_empty());
        // The rules of the gateway know the name that it has there.
        let cold = sea.call_tool("ebb", json!({"port": "lerwick"})).await.unwrap_err().to_string();
        assert!(cold.contains("too cold"), "{cold}");
        let own = sea.call_tool("one_water", json!({"port": "bergen"})).await.unwrap_err().to_string();
        assert!(own.contains("not for this server"), "{own}");
        for hidden in ["two_tide", "two_berth", "one_tide", "dead_thing"] {
            let error = sea.call_tool(hidden, ()).await.unwrap_err().to_string();
            assert!(error.contains("no such tool"), "{hidden}: {error}");
        }
        // It is a rule of the virtual server alone.
        let whole = connect(&gateway.url, "alice-token", mode).await;
        assert!(whole.call_tool("one_water", json!({"port": "bergen"})).await.is_ok());

        let find = connect(&format!("{}/find", gateway.url), "alice-token", mode).await;
        assert_eq!(names(&find, |_| true).await, ["search_tools", "call_tool"]);
        let found = find.call_tool("search_tools", json!({"query": "tide water"})).await.unwrap().text();
        assert!(found.contains("two_tide") && !found.contains("one_"), "{found}");
    }
    let audit = ended(gateway, &machine, "audit.jsonl");
    assert!(audit.contains("not the open sea"), "{audit}");
}

#[tokio::test]
async fn subscriptions_to_a_virtual_server_are_written_down_with_the_rule_that_refuses_them() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let machine = Machine::new("gateway-servers-watched");
        let gateway = gateway(&machine, &file(SERVERS));
        let sea = connect(&format!("{}/sea", gateway.url), "alice-token", mode).await;
        names(&sea, has(&["one_water", "ebb"])).await;
        let boat = sea.resources().await.unwrap().into_iter().find(|found| found.uri.contains("/boats/"));
        let boat = boat.unwrap().uri;
        let refused = sea.subscribe(boat.as_str()).await.unwrap_err().to_string();
        assert!(refused.contains("they have left"), "{refused}");
        sea.subscribe("harbour://notice").await.unwrap();
        let audit = ended(gateway, &machine, "audit.jsonl");
        let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let decisions = |uri: &str| -> Vec<_> {
            let of_uri = lines.iter().filter(|line| line["access"] == "subscribe" && line["name"] == uri);
            of_uri
                .map(|line| (line["principal"].clone(), line["decision"].clone(), line["rule"].clone()))
                .collect()
        };
        // The rules of the gateway allow both, and those of the virtual server have the last word.
        let alice = |decision: &str, rule: &str| (json!("ALICE"), json!(decision), json!(rule));
        assert_eq!(decisions(&boat), [alice("allow", "rule 2"), alice("deny", "no boats")], "{audit}");
        assert_eq!(decisions("harbour://notice"), [alice("allow", "rule 2")], "{audit}");
    }
}

#[tokio::test]
async fn paths_come_and_go_with_the_file_and_connected_clients_see_the_change() {
    let machine = Machine::new("gateway-paths");
    let gateway = gateway(&machine, &file(SERVERS));
    let sea = connect(&format!("{}/sea", gateway.url), "alice-token", Mode::Modern).await;
    assert_eq!(names(&sea, has(&["one_water", "ebb"])).await, ["one_water", "ebb"]);
    let changed = SERVERS
        .replace(r#"targets = ["one", "two"]"#, r#"targets = ["one", "three"]"#)
        .replace(r#""two_*"]"#, r#""three_*"]"#)
        .replace(r#"tools = ["two_tide"]"#, r#"tools = ["three_tide"]"#)
        .replace("not for this server", "not any more")
        .replace("[servers.find]", "[servers.seek]");
    let three = "[targets.three]\nserver = \"demo\"\nonly = [\"tide\"]\n";
    machine.write("team.toml", &file(&format!("{three}{changed}")));
    assert_eq!(names(&sea, |names| names == ["one_water", "three_tide"]).await, ["one_water", "three_tide"]);
    for (path, wanted) in [("three", "three_tide"), ("seek", "search_tools")] {
        let client = connect(&format!("{}/{path}", gateway.url), "alice-token", Mode::Modern).await;
        let names = names(&client, |names| names.iter().any(|name| name == wanted)).await;
        assert!(names.iter().any(|name| name == wanted), "{path}: {names:?}");
    }
    let gone = page(&gateway, "/mcp/find", "alice-token");
    assert!(gone.starts_with("HTTP/1.1 404"), "{gone}");
    // The rules of the gateway and its own are those of the file.
    let cold = sea.call_tool("three_tide", json!({"port": "lerwick", "hour": 1})).await.unwrap_err();
    assert!(cold.to_string().contains("too cold"), "{cold}");
    let own = sea.call_tool("one_water", json!({"port": "bergen"})).await.unwrap_err().to_string();
    assert!(own.contains("not any more"), "{own}");
    // A path may come back.
    machine.write("team.toml", &file(&format!("{three}{}", changed.replace("servers.seek", "servers.find"))));
    gateway.printed_times("has changed, and is in use now", 2).await;
    let find = connect(&format!("{}/find", gateway.url), "alice-token", Mode::Modern).await;
    assert_eq!(names(&find, |_| true).await, ["search_tools", "call_tool"]);
    // A file that is wrong changes nothing.
    machine.write("team.toml", "[targets.three]\nsrver = \"demo\"\n");
    let reported = gateway.printed("the gateway continues with the previous settings").await;
    assert!(reported.contains("line 2: unknown field `srver`; did you mean `server`?"), "{reported}");
    assert_eq!(names(&sea, |_| true).await, ["one_water", "three_tide"]);
}
