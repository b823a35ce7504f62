//! Extensions: off until the server is given one, and not there for a client that does not know it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    proto::Limits,
    server::{
        Caller, Cx, Installation, IntoToolResult, Notice, Outcome, ProtocolExtension, StateKeys, ToolError,
        ToolStart, method, tool,
    },
    types::{JsonObject, RawObject, RpcError, schema::CallToolResult},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R5, WITH_FORMS, each},
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
        let (winds, received) = (self.winds.clone(), self.winds.clone());
        let installation = installation
            .method(method("clock/wind", move |_cx: Cx, Wind { turns }| {
                winds.fetch_add(turns, Ordering::SeqCst);
                async move { Ok::<_, RpcError>(json!({"wound": turns})) }
            }))
            .on_notification("notifications/clock/stop", move |_, _| {
                received.store(0, Ordering::SeqCst);
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
            let acknowledged = client.receive().await;
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
            let notified = client.receive().await;
            assert_eq!(notified["method"], "notifications/clock/strike");
            assert_eq!(notified["params"]["hour"], hour);
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
        assert!(client.received().is_empty());
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
            installation.method(method("x/y", |_: Cx, _: Value| async { Ok::<_, RpcError>(Value::Null) }))
        }
    }
    // The protocol's own extensions have a prefix that it keeps for itself.
    for name in ["io.modelcontextprotocol/tasks", "io.modelcontextprotocol/auth/dpop"] {
        Server::new("s", "0").with(Named(name)).check().unwrap();
    }
    for (server, text) in [
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
        assert!(error.starts_with(text), "{error}");
    }
}

/// What only one extension can have, and a check of the final server; a hook that runs with each start.
#[tokio::test]
async fn hooks_of_extensions_are_checked_and_run() {
    struct Hooked(&'static str, fn(Installation) -> Installation);
    impl ProtocolExtension for Hooked {
        fn name(&self) -> &str {
            self.0
        }
        fn install(self, installation: Installation) -> Installation {
            (self.1)(installation)
        }
    }
    static STARTS: AtomicUsize = AtomicUsize::new(0);
    let detacher: fn(Installation) -> Installation = |hooked| hooked.takes_detached(|_| None);
    let arm: fn(Installation) -> Installation = |hooked| hooked.result_type("ticket");
    let member: fn(Installation) -> Installation = |hooked| hooked.listens("tickets");
    for (one, text) in [
        (detacher, "takes over detached calls"),
        (arm, "the result type `ticket` of `com.example/b` is one of the extension `com.example/a`"),
        (member, "the filter member `tickets` of `com.example/b` is one of the extension `com.example/a`"),
    ] {
        let server = Server::new("s", "0").with(Hooked("com.example/a", one));
        server.check().unwrap();
        let error = server.with(Hooked("com.example/b", one)).check().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let checked =
        Hooked("com.example/a", |hooked| hooked.check(|keys| keys.is_random().then(|| "no key".to_owned())));
    let server = Server::new("s", "0").with(checked);
    assert!(server.check().unwrap_err().to_string().contains("no key"));
    server.state_keys(StateKeys::from([1; 32])).check().unwrap();

    let counted = Hooked("com.example/a", |hooked| {
        hooked.on_start(|_| {
            STARTS.fetch_add(1, Ordering::SeqCst);
        })
    });
    let server = Server::new("s", "0").with(counted);
    assert_eq!(STARTS.load(Ordering::SeqCst), 0);
    for starts in 1..3 {
        Client::open(&server, R5, json!({})).await;
        assert_eq!(STARTS.load(Ordering::SeqCst), starts);
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
        client.receive().await;
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
                assert_eq!(client.receive().await["params"]["value"], number, "{revision}");
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

/// An extension with settings, which echoes those of the client.
struct Echo(&'static str);

impl ProtocolExtension for Echo {
    fn name(&self) -> &str {
        self.0
    }

    fn settings(&self) -> JsonObject {
        json!({"deep": {"er": [1, {"est": null}]}, "unknown": true}).as_object().unwrap().clone()
    }

    fn install(self, installation: Installation) -> Installation {
        installation
    }
}

/// Unknown ids and nested settings survive in both directions, in every revision.
#[tokio::test]
async fn the_map_of_extensions_survives_in_every_revision() {
    let echo = tool("echo", |cx: Cx| async move {
        #[derive(serde::Deserialize, serde::Serialize)]
        struct Settings {
            known: u32,
            #[serde(flatten)]
            rest: JsonObject,
        }
        let settings: Option<Settings> = cx.extension_as("com.example/deep")?;
        assert_eq!(settings.as_ref().map(|settings| settings.known), Some(1));
        assert!(settings.is_some_and(|settings| settings.rest["more"]["z"] == json!([1])));
        let wrong = cx.extension_as::<u32>("com.example/deep").unwrap_err();
        assert!(wrong.message.contains("`com.example/deep`"), "{}", wrong.message);
        assert_eq!(cx.require_extension("com.example/none").unwrap_err().code.0, -32021);
        Ok::<_, pintle::server::ToolError>(serde_json::to_string(&cx.peer().capabilities.extensions)?)
    });
    let server =
        Server::new("s", "0").with(Echo("com.example/echo")).with(Echo("org.example/auth/two")).tool(echo);
    let declared = json!({"com.example/deep": {"known": 1, "more": {"z": [1], "a": {"b": null}}}, "org.nobody/knows/this": {}});
    let own = json!({"deep": {"er": [1, {"est": null}]}, "unknown": true});
    let offered = json!({"com.example/echo": own, "org.example/auth/two": own});
    each(&server, &ALL, json!({"extensions": declared}), async |client: &mut Client| {
        let seen: Value = serde_json::from_str(&client.tool("echo").await).unwrap();
        assert_eq!(seen, declared, "{}", client.revision);
        if client.revision == R5 {
            let discovered = client.call("server/discover", json!({})).await;
            assert_eq!(discovered["result"]["capabilities"]["extensions"], offered);
        }
    })
    .await;
    for revision in ALL.into_iter().filter(|revision| *revision != R5) {
        let mut raw = Raw::new(&server);
        let hello = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}});
        raw.request("initialize", hello).await;
        assert_eq!(raw.recv().await["result"]["capabilities"]["extensions"], offered, "{revision}");
    }
}

#[test]
fn what_an_extension_needs_is_checked_on_the_final_server() {
    struct Needy(&'static str);
    impl ProtocolExtension for Needy {
        fn name(&self) -> &str {
            "com.example/needy"
        }
        fn install(self, installation: Installation) -> Installation {
            installation.needs(self.0)
        }
    }
    let unmet = |server: &Server| server.check().unwrap_err().to_string();
    let server = Server::new("s", "0").with(Needy("tools"));
    assert_eq!(
        unmet(&server),
        "the extension `com.example/needy` needs `tools`, which the server does not have; add it"
    );
    // The order does not matter.
    server.tool(tool("queue", || async { Ticket })).check().unwrap();
    let server = Server::new("s", "0").with(Needy("com.example/echo"));
    assert!(unmet(&server).contains("needs `com.example/echo`"), "{}", unmet(&server));
    server.with(Echo("com.example/echo")).check().unwrap();
}

/// An extension that cannot be installed as a whole is not installed at all.
#[test]
fn an_extension_is_installed_as_a_whole_or_not_at_all() {
    struct Half;
    impl ProtocolExtension for Half {
        fn name(&self) -> &str {
            "com.example/half"
        }
        fn install(self, installation: Installation) -> Installation {
            let handler = |_: Cx, _: Value| async { Ok::<_, RpcError>(Value::Null) };
            installation
                .method(method("half/one", handler))
                .method(method("tools/call", handler))
                .needs("prompts")
        }
    }
    let server = Server::new("s", "0").with(Half);
    // The need of what was not installed is not reported.
    assert_eq!(
        server.check().unwrap_err().to_string(),
        "`tools/call` is a method of the protocol; choose another name"
    );
    let other = Server::new("s", "0")
        .with(Half)
        .method(method("half/one", |_: Cx, _: Value| async { Ok::<_, RpcError>(Value::Null) }));
    assert!(!other.check().unwrap_err().to_string().contains("half/one"));
}

#[tokio::test]
async fn an_extension_may_exist_in_some_revisions_only() {
    struct Dated;
    impl ProtocolExtension for Dated {
        fn name(&self) -> &str {
            "com.example/dated"
        }
        fn install(self, installation: Installation) -> Installation {
            let handler = |_: Cx, _: Value| async { Ok::<_, RpcError>(json!({})) };
            installation.revisions(["2025-06-18".parse().unwrap()]).method(method("dated/ask", handler))
        }
    }
    let server = Server::new("s", "0").with(Dated);
    each(&server, &ALL, json!({"extensions": {"com.example/dated": {}}}), async |client: &mut Client| {
        let reply = client.call("dated/ask", json!({})).await;
        match client.revision {
            "2025-06-18" => assert!(reply["result"].is_object(), "{reply}"),
            _ => assert_eq!(reply["error"]["code"], -32601, "{reply}"),
        }
    })
    .await;
}

/// Layers of an extension see every call, and its interceptor decides about tools.
#[tokio::test]
async fn layers_and_interceptors_of_an_extension() {
    struct Guard(Arc<AtomicUsize>);
    impl ProtocolExtension for Guard {
        fn name(&self) -> &str {
            "com.example/guard"
        }
        fn install(self, installation: Installation) -> Installation {
            let seen = self.0;
            installation
                .layer(pintle::server::around(move |cx: Cx, next: pintle::server::Next| {
                    seen.fetch_add(usize::from(cx.method() == "tools/call"), Ordering::SeqCst);
                    next.run(cx)
                }))
                .intercept_tools(|_, tool| match tool.name.as_str() {
                    "closed" => ToolStart::Refuse(Outcome::Failed(RpcError::invalid_request("closed"))),
                    _ => ToolStart::Run,
                })
        }
    }
    let seen = Arc::new(AtomicUsize::new(0));
    let server = Server::new("s", "0")
        .with(Guard(seen.clone()))
        .tool(tool("open", || async { "open" }))
        .tool(tool("closed", || async { "never" }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        seen.store(0, Ordering::SeqCst);
        assert_eq!(client.tool("open").await, "open");
        let refused = client.call("tools/call", json!({"name": "closed"})).await;
        assert_eq!(refused["error"]["message"], "closed", "{refused}");
        assert_eq!(seen.load(Ordering::SeqCst), 2);
    })
    .await;
}

/// An extension that has calls detached when their handlers wait, and takes none of them over.
struct Idle {
    declines: bool,
}

impl ProtocolExtension for Idle {
    fn name(&self) -> &str {
        "com.example/idle"
    }

    fn install(self, installation: Installation) -> Installation {
        let installation = installation.intercept_tools(|_, _| ToolStart::DetachOnWait);
        match self.declines {
            true => installation.takes_detached(|_| None),
            false => installation,
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// The questions, progress and waits of a call that nobody takes over are those of any other call.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_to_be_detached_and_that_nobody_takes_over_runs_as_usual() {
    async fn greet(cx: Cx) -> Result<String, ToolError> {
        let name = cx.elicit::<Name>("name", "Who?").await?.accepted().ok_or("declined")?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!cx.is_detached());
        Ok(format!("hello {}", name.name))
    }
    async fn count(cx: Cx) -> &'static str {
        cx.progress(1.0, 2.0).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.progress(2.0, 2.0).await;
        "counted"
    }
    for declines in [true, false] {
        let server = Server::new("s", "0")
            .with(Idle { declines })
            .tool(tool("greet", greet))
            .tool(tool("count", count));
        each(&server, &WITH_FORMS, json!({"elicitation": {"form": {}}}), async |client: &mut Client| {
            client.answer = Box::new(|_, _| json!({"action": "accept", "content": {"name": "Ann"}}));
            assert_eq!(client.tool("greet").await, "hello Ann");
            assert_eq!(client.questions, 1);
            let call = json!({"name": "count", "_meta": {"progressToken": 7}});
            let counted = client.call("tools/call", call).await;
            assert_eq!(counted["result"]["content"][0]["text"], "counted", "{counted}");
            let received = client.received();
            let done: Vec<_> = received.iter().map(|report| &report["params"]["progress"]).collect();
            assert_eq!(done, [1.0, 2.0], "{received:?}");
        })
        .await;
    }
}
