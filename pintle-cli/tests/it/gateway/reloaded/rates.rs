//! Calls that are counted when rules change.

use pintle::{Connection, client::Mode};

use crate::{
    gateway::{connect, gateway, names},
    support::machine::Machine,
};

async fn is_limited(client: &Connection, tool: &str) -> bool {
    let called = client.call_tool(tool, serde_json::json!({"port": "bergen", "hour": 4})).await;
    called.err().is_some_and(|error| error.to_string().contains("was called too often"))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_stay_counted_when_another_rule_is_added_also_at_a_virtual_server() {
    let file = |more: &str, more_small: &str| {
        format!(
            "{more}[[rules]]\nrate = {{ calls = 3, seconds = 3600 }}\n[[rules]]\ndecision = \"allow\"\n\
             [targets.one]\nserver = \"demo\"\n[servers.small]\n{more_small}\
             [[servers.small.rules]]\nrate = {{ calls = 2, seconds = 3600 }}\n\
             [[servers.small.rules]]\ndecision = \"allow\"\n"
        )
    };
    let machine = Machine::new("gateway-reloaded-rates");
    let gateway = gateway(&machine, &file("", ""));
    let alice = connect(&gateway.url, "alice-token", Mode::Modern).await;
    names(&alice, |names| !names.is_empty()).await;
    let bob = connect(&format!("{}/small", gateway.url), "bob-token", Mode::Modern).await;
    for number in 0..3 {
        assert!(!is_limited(&alice, "one_tide").await, "{number}");
        assert_eq!(is_limited(&bob, "one_tide").await, number == 2);
    }
    let deny = "tools = [\"one_berth\"]\ndecision = \"deny\"\n";
    let (more, small) = (format!("[[rules]]\n{deny}"), format!("[[servers.small.rules]]\n{deny}"));
    machine.write("team.toml", &file(&more, &small));
    gateway.printed("has changed, and is in use now").await;
    assert!(is_limited(&alice, "one_tide").await);
    assert!(is_limited(&bob, "one_tide").await);
}
