//! Extensions: off until the server is given one, and not there for a client that does not know it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    proto::Limits,
    server::{Caller, Cx, Installation, IntoToolResult, Notice, Outcome, ProtocolExtension, tool},
    types::{JsonObject, RawObject, RpcError, schema::CallToolResult},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R5, each},
    line_client::Raw,
};
#[cfg(feature = "http-server")]
use crate::support::{
    eras::{R3, R4},
    http_client::Wire,
};

#[derive(Clone, Default)]
struct Clock {
    winds: Arc<AtomicUsize>,
    stateless_only: bool,
}

#[derive(serde::Deserialize)]
struct Wind {
    turns: usize,
}

impl ProtocolExtension for Clock {
    fn name(&self) -> &str {
        "com.example/clock"
    }

    fn settings(&self) -> JsonObject {
        json!({"face": "round"}).as_object().unwrap().clone()
    }

    fn install(self, installation: Installation) -> Installation {
        let (winds, heard) = (self.winds.clone(), self.winds.clone());
        let installation = installation
            .method("clock/wind", move |_cx: Cx, Wind { turns }| {
                winds.fetch_add(turns, Ordering::SeqCst);
                async move { Ok::<_, RpcError>(json!({"wound": turns})) }
            })
            .on_notification("notifications/clock/stop", move |_, _| {
                heard.store(0, Ordering::SeqCst);
                async {}
            })
            .result_type("ticket")
            .listens("clockHours")
            .grants(|member, wanted, _| {
                assert_eq!(member, "clockHours");
                // A session wants all there is, and has no words for less.
                if *wanted == true {
                    return Some(json!([3, 4]));
                }
                let hours: Vec<_> =
                    wanted.as_array()?.iter().filter(|hour| hour.as_u64() < Some(12)).collect();
                Some(json!(hours))
            })
            .named_by("clock/wind", "turns");
        if self.stateless_only { installation.stateless_only() } else { installation }
    }
}

struct Ticket;

impl IntoToolResult for Ticket {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        let ticket: RawObject = r#"{"resultType":"ticket","number":7}"#.parse().unwrap();
        Err(Outcome::Complete(ticket.into()))
    }
}

fn server(clock: Clock) -> Server {
    Server::new("s", "0").with(clock).tool(tool("queue", || async { Ticket }))
}

fn strikes(hour: u64) -> Notice {
    let fits = move |wanted: &Value| wanted.as_array().is_some_and(|hours| hours.contains(&hour.into()));
    Notice::new("clockHours", "notifications/clock/strike", json!({"hour": hour})).to(fits)
}

fn declared() -> Value {
    json!({"extensions": {"com.example/clock": {}}})
}

#[tokio::test]
async fn a_method_for_those_who_declared_it() {
    let clock = Clock::default();
    let server = server(clock.clone());
    each(&server, &ALL, declared(), async |client: &mut Client| {
        clock.winds.store(0, Ordering::SeqCst);
        let wound = client.call("clock/wind", json!({"turns": 3})).await;
        assert_eq!(wound["result"]["wound"], 3, "{wound}");
        assert_eq!(clock.winds.load(Ordering::SeqCst), 3);
        let bad = client.call("clock/wind", json!({"turns": "x"})).await;
        assert_eq!(bad["error"]["code"], -32602);
        client.notify("notifications/clock/stop", json!({})).await;
        client.call("clock/wind", json!({"turns": 0})).await;
        while clock.winds.load(Ordering::SeqCst) != 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let refused = client.call("clock/wind", json!({"turns": 3})).await["error"].clone();
        if client.revision == R5 {
            assert_eq!(refused["code"], -32021);
            assert_eq!(refused["data"]["requiredCapabilities"], declared());
        } else {
            assert_eq!(refused["code"], -32601);
        }
    })
    .await;
}

#[tokio::test]
async fn a_notice_for_those_who_listen() {
    let server = server(Clock::default());
    each(&server, &ALL, declared(), async |client: &mut Client| {
        if client.revision == R5 {
            let filter = json!({"clockHours": [3, 5, 17], "unknown": true});
            client.send("subscriptions/listen", json!({"notifications": filter})).await;
            let acknowledged = client.hear().await;
            assert_eq!(
                acknowledged["params"]["notifications"],
                json!({"clockHours": [3, 5]}),
                "{acknowledged}"
            );
        }
        for hour in [3, 4, 5] {
            server.tell(strikes(hour));
        }
        let hours = if client.revision == R5 { vec![3, 5] } else { vec![3, 4] };
        for hour in hours {
            let told = client.hear().await;
            assert_eq!(told["method"], "notifications/clock/strike");
            assert_eq!(told["params"]["hour"], hour);
        }
    })
    .await;
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        if client.revision == R5 {
            let filter = json!({"notifications": {"clockHours": [3]}});
            assert_eq!(client.call("subscriptions/listen", filter).await["error"]["code"], -32021);
        }
        server.tell(strikes(3));
        assert!(client.call("tools/list", json!({})).await.get("result").is_some());
        assert!(client.heard().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_filter_of_an_extension_is_limited() {
    let mut limits = Limits::default();
    limits.watched = 3;
    let server = server(Clock::default()).limits(limits);
    let mut client = Client::open(&server, R5, declared()).await;
    let filter = json!({"notifications": {"clockHours": [1, 2, 3, 4]}});
    let refused = client.call("subscriptions/listen", filter).await;
    assert_eq!(refused["error"]["code"], -32602);
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(message, "`clockHours` has more than 3 entries: open several subscriptions");
}

#[tokio::test]
async fn a_kind_of_result_for_those_who_declared_it() {
    let server = server(Clock::default());
    let mut knows = Client::open(&server, R5, declared()).await;
    let ticket = knows.call("tools/call", json!({"name": "queue"})).await;
    assert_eq!((&ticket["result"]["resultType"], &ticket["result"]["number"]), (&json!("ticket"), &json!(7)));
    let mut naive = Client::open(&server, R5, json!({})).await;
    let refused = naive.call("tools/call", json!({"name": "queue"})).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let mut old = Client::open(&server, ALL[3], declared()).await;
    let refused = old.call("tools/call", json!({"name": "queue"})).await;
    assert_eq!(refused["error"]["code"], -32603, "sessions have no words for it: {refused}");
}

#[tokio::test]
async fn it_is_announced_where_it_can_be_used() {
    for stateless_only in [false, true] {
        let server = server(Clock { stateless_only, ..Clock::default() });
        each(&server, &ALL, declared(), async |client: &mut Client| {
            let answer = client.call("clock/wind", json!({"turns": 1})).await;
            let there = client.revision == R5 || !stateless_only;
            assert_eq!(answer.get("result").is_some(), there, "{answer}");
            if client.revision == R5 {
                let found = client.call("server/discover", json!({})).await;
                let settings = &found["result"]["capabilities"]["extensions"]["com.example/clock"];
                assert_eq!(*settings, json!({"face": "round"}));
            }
        })
        .await;
    }
}

#[test]
fn invalid_extensions_are_reported() {
    struct Named(&'static str);
    impl ProtocolExtension for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn install(self, installation: Installation) -> Installation {
            installation.method("x/y", |_: Cx, _: Value| async { Ok::<_, RpcError>(Value::Null) })
        }
    }
    // The protocol's own extensions have a prefix that it keeps for itself.
    for name in ["io.modelcontextprotocol/tasks", "io.modelcontextprotocol/auth/dpop"] {
        Server::new("s", "0").with(Named(name)).check().unwrap();
    }
    for (server, said) in [
        (Server::new("s", "0").with(Named("clock")), "`clock` is not an extension's name"),
        (
            Server::new("s", "0").with(Named("com.example/a")).with(Named("com.example/a")),
            "an extension named `com.example/a` is already registered",
        ),
        (
            Server::new("s", "0").with(Named("com.example/a")).with(Named("com.example/b")),
            "the method `x/y` of `com.example/b` is one of the extension `com.example/a`",
        ),
        // Some official names have two slashes.
        (Server::new("s", "0").with(Named("com.example/auth/")), "`com.example/auth/` is not"),
        (Server::new("s", "0").with(Named("com example/a")), "`com example/a` is not"),
    ] {
        let error = server.check().unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

/// Mail, each for one principal.
struct Mail;

impl ProtocolExtension for Mail {
    fn name(&self) -> &str {
        "com.example/mail"
    }

    fn install(self, installation: Installation) -> Installation {
        installation.listens("mail").grants(|_, _, principal| principal.map(Into::into))
    }
}

fn mail(to: &'static str, number: u64) -> Notice {
    Notice::new("mail", "notifications/mail/new", number).to(move |granted| granted == to)
}

/// A client of a principal that hears of mail.
async fn reader(server: &Server, revision: &'static str, name: &str) -> Client {
    let raw = Raw::known(server, Caller::new().principal(name));
    let mut client = Client::over(raw, revision, json!({"extensions": {"com.example/mail": {}}})).await;
    if revision == R5 {
        client.send("subscriptions/listen", json!({"notifications": {"mail": true}})).await;
        client.hear().await;
    } else {
        client.call("ping", json!({})).await;
    }
    client
}

#[tokio::test]
async fn a_notice_for_one_principal_reaches_nobody_else() {
    let server = Server::new("post", "0").with(Mail);
    for revision in ALL {
        let mut ann = reader(&server, revision, "ann").await;
        let mut bob = reader(&server, revision, "bob").await;
        for (to, number) in [("ann", 1), ("bob", 2), ("ann", 3), ("bob", 4)] {
            server.tell(mail(to, number));
        }
        for (client, numbers) in [(&mut ann, [1, 3]), (&mut bob, [2, 4])] {
            for number in numbers {
                assert_eq!(client.hear().await["params"]["value"], number, "{revision}");
            }
        }
    }
}

#[cfg(feature = "http-server")]
#[tokio::test]
async fn nor_over_http() {
    let server = Server::new("post", "0").with(Mail);
    let http =
        server.http().unwrap().principal(|head| Some(head.headers.get("x-user")?.to_str().ok()?.into()));
    let declared = json!({"extensions": {"com.example/mail": {}}});
    for revision in [R3, R4] {
        let open = async |name: &str| {
            let wire = Wire::new(&http).with("x-user", name).open(revision, declared.clone()).await;
            wire.get().await
        };
        let (mut ann, mut bob) = (open("ann").await, open("bob").await);
        for (to, number) in [("ann", 1), ("bob", 2), ("ann", 3), ("bob", 4)] {
            server.tell(mail(to, number));
        }
        for (stream, numbers) in [(&mut ann, [1, 3]), (&mut bob, [2, 4])] {
            for number in numbers {
                assert_eq!(stream.message().await.unwrap()["params"]["value"], number, "{revision}");
            }
        }
    }
}
