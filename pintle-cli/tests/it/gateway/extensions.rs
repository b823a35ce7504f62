//! An extension that two targets declare.

use pintle::{
    Server,
    client::Mode,
    server::method,
    types::{JsonObject, RpcError},
};
use serde_json::{Value, json};

use super::{connect, gateway, target};
use crate::support::{machine::Machine, pintle, run};

const CLOCK: &str = "com.example/clock";

/// A server with an extension, of whose method it says that it has answered it.
fn clock(name: &'static str) -> Server {
    Server::new(name, "0")
        .extension(CLOCK, json!({ "of": name }))
        .method(method("clock/wind", move |_, _: JsonObject| async move {
            Ok::<_, RpcError>(json!({ "wound_by": name }))
        }))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_chooses_the_target_that_answers_for_an_extension() {
    let hall = clock("hall").serve_http("127.0.0.1:0").await.unwrap();
    let tower = clock("tower").serve_http("127.0.0.1:0").await.unwrap();
    let targets = target("hall", hall.address()) + &target("tower", tower.address());
    for chosen in [None, Some("hall"), Some("tower")] {
        let machine = Machine::new(&format!("gateway-extensions-{}", chosen.unwrap_or("none")));
        let choice = chosen.map(|target| format!("extensions = {{ \"{CLOCK}\" = \"{target}\" }}\n"));
        let gateway = gateway(&machine, &(choice.unwrap_or_default() + &targets));
        let warning =
            format!("`hall` and `tower` both offer the extension `{CLOCK}`: its methods are refused");
        if chosen.is_none() {
            gateway.printed(&warning).await;
        }
        for mode in [Mode::Legacy, Mode::Modern] {
            let client = connect(&gateway.url, "alice-token", mode).await;
            let wound = client.request::<_, Value>("clock/wind", json!({})).await;
            match chosen {
                Some(target) => {
                    assert_eq!(wound.unwrap()["wound_by"], target, "{mode:?}");
                    // No capability of a session names extensions.
                    if let Some(declared) = &client.capabilities().extensions {
                        assert_eq!(declared[CLOCK]["of"], target, "{mode:?}");
                    }
                }
                None => {
                    let refused = wound.unwrap_err().to_string();
                    assert!(
                        refused.contains("may be a method of any of `hall`, `tower`"),
                        "{mode:?}: {refused}"
                    );
                }
            }
        }
        let mut command = pintle();
        command.args(["gateway", "team.toml", "--check", "--connect"]).current_dir(machine.path(""));
        let checked = tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap();
        assert_eq!(checked.code == Some(0), chosen.is_some(), "{checked:?}");
        assert_eq!(checked.stderr.contains(&warning), chosen.is_none(), "{checked:?}");
    }
}
