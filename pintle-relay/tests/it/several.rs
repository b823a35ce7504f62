//! Extensions and custom methods of several servers behind one.

use pintle::{
    Server,
    server::{
        Authenticated, Caller, Cx, Decision, Entry, GateRequest, Installation, Mount, ProtocolExtension,
        method, tool,
    },
    types::{JsonObject, RpcError},
};
use serde_json::{Value, json};

use super::{
    extensions::capabilities,
    world::{self, ERAS},
};
use crate::support::{
    eras::{ALL, Client, R4, R5},
    line_client::Raw,
};

/// An extension of any name, whose methods say which server has answered.
struct Named {
    id: &'static str,
    settings: Value,
    server: &'static str,
}

impl ProtocolExtension for Named {
    fn name(&self) -> &str {
        self.id
    }

    fn settings(&self) -> JsonObject {
        self.settings.as_object().unwrap().clone()
    }

    fn install(self, installation: Installation) -> Installation {
        let (_, name) = self.id.rsplit_once('/').unwrap();
        let server = self.server;
        installation.for_all_clients().method(method(
            format!("{name}/wind"),
            move |_: Cx, params: JsonObject| async move {
                Ok::<_, RpcError>(json!({"server": server, "wound": params}))
            },
        ))
    }
}

fn behind(server: &'static str, extensions: Vec<(&'static str, Value)>) -> Server {
    let start =
        Server::new(server, "1.0.0")
            .tool(tool("name", move || async move { server }))
            .method(method(format!("{server}.example/only"), move |_: Cx, _: JsonObject| async move {
                Ok::<_, RpcError>(json!({"server": server}))
            }));
    extensions.into_iter().fold(start, |start, (id, settings)| start.with(Named { id, settings, server }))
}

fn one() -> Server {
    behind(
        "one",
        vec![
            ("com.example/clock", json!({"zones": {"eu": [1, {"dst": true}]}})),
            ("com.example/lamp", json!({})),
        ],
    )
}

fn two() -> Server {
    behind(
        "two",
        vec![
            ("com.example/clock", json!({"zones": "none"})),
            ("io.modelcontextprotocol/auth/bell", json!({"loud": {"very": [null, 1.5]}})),
        ],
    )
}

/// A server with two relays.
async fn relays(upstream: &str) -> Server {
    Server::new("front", "1.0.0")
        .provider(Mount::new("one", world::relay(&one(), upstream).await))
        .provider(Mount::new("two", world::relay(&two(), upstream).await))
}

/// A server with two mounted ones.
fn mounts() -> Server {
    Server::new("front", "1.0.0").mount("one", one()).mount("two", two())
}

#[tokio::test(start_paused = true)]
async fn a_server_declares_the_extensions_of_all_servers_behind_it() {
    let all = json!({
        "com.example/clock": {"zones": {"eu": [1, {"dst": true}]}},
        "com.example/lamp": {},
        "io.modelcontextprotocol/auth/bell": {"loud": {"very": [null, 1.5]}},
    });
    for front in [relays(R4).await, relays(R5).await, mounts()] {
        // Through one more server, too.
        let outer = Server::new("outer", "1").provider(world::relay(&front, R5).await);
        for downstream in ALL {
            for server in [&front, &outer] {
                assert_eq!(capabilities(server, downstream).await["extensions"], all, "{downstream}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_reaches_the_server_that_declares_its_extension_and_none_of_two() {
    for upstream in ERAS {
        for (is_relay, front) in [(true, relays(upstream).await), (false, mounts())] {
            for downstream in ALL {
                let mut client = Client::open(&front, downstream, json!({})).await;
                for (method, server) in [("clock/wind", "one"), ("lamp/wind", "one"), ("bell/wind", "two")] {
                    if is_relay && method == "clock/wind" {
                        let message = client.call(method, json!({})).await["error"]["message"].to_string();
                        assert!(
                            message.contains("any of `one`, `two`, which declare the extension"),
                            "{message}"
                        );
                        continue;
                    }
                    let answer = client.call(method, json!({"turns": 1.50})).await;
                    assert_eq!(answer["result"]["server"], server, "{downstream} to {upstream}: {answer}");
                    assert_eq!(answer["result"]["wound"]["turns"], 1.5);
                }
                let only = client.call("two.example/only", json!({})).await;
                match is_relay {
                    // Nothing tells whose method it is.
                    true => {
                        assert_eq!(only["error"]["code"], -32601, "{only}");
                        let message = only["error"]["message"].as_str().unwrap();
                        assert!(message.contains("any of `one`, `two`"), "{message}");
                    }
                    false => assert_eq!(only["result"]["server"], "two", "{only}"),
                }
                assert_eq!(client.tool("two_name").await, "two");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_methods_reach_a_single_server_behind() {
    for upstream in ERAS {
        let front =
            Server::new("front", "1.0.0")
                .provider(world::relay(&one(), upstream).await)
                .method(method("front/own", |_: Cx, _: JsonObject| async {
                    Ok::<_, RpcError>(json!({"server": "front"}))
                }));
        for downstream in ALL {
            let mut client = Client::open(&front, downstream, json!({})).await;
            for (method, server) in
                [("one.example/only", "one"), ("front/own", "front"), ("lamp/wind", "one")]
            {
                let answer = client.call(method, json!({})).await;
                assert_eq!(answer["result"]["server"], server, "{downstream} to {upstream}: {answer}");
            }
            let absent = client.call("one.example/absent", json!({})).await;
            assert_eq!(absent["error"]["code"], -32601, "{absent}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn gates_and_rights_decide_about_methods_of_servers_behind() {
    let gated = relays(R5).await.gate(|request: &GateRequest<'_>| match (request.entry, request.backend) {
        (Entry::Method(_), Some("one")) => Decision::Hide,
        (Entry::Method("bell/wind"), Some("two")) => Decision::Deny("it is night".to_owned()),
        _ => Decision::Allow,
    });
    let mut client = Client::open(&gated, R5, json!({})).await;
    // The first is not there, so that the other is the only one.
    assert_eq!(client.call("clock/wind", json!({})).await["result"]["server"], "two");
    let denied = client.call("bell/wind", json!({})).await["error"].to_string();
    assert!(denied.contains("it is night"), "{denied}");
    let absent = client.call("one.example/only", json!({})).await["error"].to_string();
    assert!(absent.contains("-32601") && !absent.contains("`one`"), "{absent}");

    for (hidden, code) in [(false, -32600), (true, -32601)] {
        let mount = Mount::new("one", world::relay(&one(), R5).await).requires(["clock:wind"]);
        let mount = if hidden { mount.hidden() } else { mount };
        let front = Server::new("front", "1").provider(mount);
        for (rights, allowed) in [("clock:wind", true), ("other", false)] {
            let caller = Authenticated::new("ann").rights(move |right| right == rights);
            let raw = Raw::known(&front, Caller::new().with(caller));
            let mut client = Client::over(raw, R5, json!({})).await;
            let answer = client.call("clock/wind", json!({})).await;
            match allowed {
                true => assert_eq!(answer["result"]["server"], "one", "{answer}"),
                false => assert_eq!(answer["error"]["code"], code, "{answer}"),
            }
        }
    }
}

/// A mounted server is as strict about its extensions as one of its own.
#[tokio::test(start_paused = true)]
async fn an_extension_of_a_mounted_server_has_to_be_declared() {
    struct Strict;
    impl ProtocolExtension for Strict {
        fn name(&self) -> &str {
            "com.example/strict"
        }

        fn install(self, strict: Installation) -> Installation {
            strict.stateless_only().method(method("strict/do", |_: Cx, _: JsonObject| async {
                Ok::<_, RpcError>(json!({"done": true}))
            }))
        }
    }
    let inner = Server::new("inner", "1").with(Strict);
    let front = Server::new("front", "1").mount("in", inner.clone());
    let declares = json!({"extensions": {"com.example/strict": {}}});
    for downstream in ALL {
        for declared in [json!({}), declares.clone()] {
            let mut direct = Client::open(&inner, downstream, declared.clone()).await;
            let mut through = Client::open(&front, downstream, declared.clone()).await;
            let expected = direct.call("strict/do", json!({})).await;
            let found = through.call("strict/do", json!({})).await;
            assert_eq!(found["error"], expected["error"], "{downstream} {declared}");
            assert_eq!(found["result"]["done"], expected["result"]["done"], "{downstream} {declared}");
        }
    }
}
