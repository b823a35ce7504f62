//! For each decision, each use, each place of the gate and each era: what is hidden is nowhere, and what is denied does not run.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{
        CacheHint, Caller, Cx, Decision, Gate, GateRequest, ListKind, Lookup, Outcome, PageRequest, Prefix,
        Principal, Provider, ProviderInfo, ProviderPage, ReportPart, RequestError, ResultLimit, Rules, Scope,
        Target, ToolSearch, Transform, prompt, resource, template, tool,
    },
    types::{
        JsonObject,
        schema::{
            CacheScope, ContentBlock, LoggingLevel, Prompt, PromptMessage, Resource, ResourceTemplate, Tool,
        },
    },
};
use pintle_relay::Relay;
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R4, R5},
    line_client::Raw,
};

/// Where the gate is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// On the server that has the entries.
    Own,
    /// On the server that they are mounted in.
    Outer,
    /// On the server that is mounted.
    Inner,
    /// On a mounted server whose entries are changed.
    Transformed,
    /// On the server in front of a relay.
    Relay(&'static str),
}

const PLACES: [Place; 6] =
    [Place::Own, Place::Outer, Place::Inner, Place::Transformed, Place::Relay(R4), Place::Relay(R5)];

/// A server whose lists may be cached by anybody.
fn server(name: &str) -> Server {
    Server::new(name, "0").tool_completion().logging().cache_lists(CacheHint::new(1000, CacheScope::Public))
}

/// Every kind of thing twice, which log that they run, and links to a secret in the results of tools, prompts and tasks.
fn things(ran: &Arc<AtomicUsize>) -> Server {
    let mut server = server("s").with(Tasks::new());
    for name in ["open", "secret"] {
        let ran = move || {
            let ran = ran.clone();
            move |cx: Cx| {
                ran.fetch_add(usize::from(name == "secret"), Ordering::SeqCst);
                async move {
                    cx.log(LoggingLevel::Info, None, &format!("{name} is running")).await;
                    "ran".to_owned()
                }
            }
        };
        let public = CacheHint::new(1000, CacheScope::Public);
        server = server
            .tool(
                tool(name, ran())
                    .input_schema(json!({"type": "object", "properties": {"x": {"enum": ["a"]}}})),
            )
            .prompt(prompt(name, ran()).optional("x", "").argument_values("x", ["a"]))
            .resource(resource(format!("{name}://r"), name, ran()).cache(public.clone()))
            .template(
                template(format!("{name}://t/{{x}}"), name, ran()).complete("x", || async { vec!["a"] }),
            );
    }
    let block = |block: Value| -> ContentBlock { serde_json::from_value(block).unwrap() };
    let links = move || {
        let link = |uri: &str| block(json!({"type": "resource_link", "uri": uri, "name": "linked"}));
        let embedded = |uri: &str| {
            block(json!({"type": "resource", "resource": {"uri": uri, "text": format!("in {uri}")}}))
        };
        vec![
            link("open://r"),
            link("secret://r"),
            embedded("open://t/1"),
            embedded("secret://t/1"),
            ContentBlock::text("links"),
        ]
    };
    let messages = move || links().into_iter().map(PromptMessage::user).collect::<Vec<_>>();
    server
        .tool(tool("link", move || std::future::ready(links())))
        .tool(tool("report", move || std::future::ready(links())).task("required"))
        .tool(tool("secret_report", move || std::future::ready(links())).task("required"))
        .prompt(prompt("link", move || std::future::ready(messages())))
}

fn gate(decision: Decision) -> impl Fn(&GateRequest<'_>) -> Decision + Send + Sync + 'static {
    move |request| if request.name().contains("secret") { decision.clone() } else { Decision::Allow }
}

async fn gated(place: Place, decision: &Decision, ran: &Arc<AtomicUsize>) -> (Server, Server) {
    gated_by(place, ran, gate(decision.clone())).await
}

async fn gated_by(place: Place, ran: &Arc<AtomicUsize>, gate: impl Gate) -> (Server, Server) {
    let things = things(ran);
    let outer = || server("outer");
    // Of a part of it, everything is secret.
    let part = server("part").instructions("Ask for secrets.").tool(tool("secret_part", || async { "" }));
    let gated = |server: Server| server.mount(Prefix::none(), part).gate(gate);
    let server = match place {
        Place::Own => gated(things.clone()),
        Place::Outer => gated(outer().mount(Prefix::none(), things.clone())),
        Place::Inner => outer().mount(Prefix::none(), gated(things.clone())),
        Place::Transformed => {
            let changed = Transform::new(gated(things.clone())).max_result(ResultLimit::new(1 << 20));
            outer().mount(Prefix::none(), changed)
        }
        Place::Relay(revision) => {
            let behind = things.clone();
            let client = pintle::Client::new("relay", "0").revisions([revision.parse().unwrap()]);
            let relay = Relay::connect(client, move || {
                let transport = behind.in_process().map_err(std::io::Error::other);
                async { transport }
            });
            gated(outer().provider(relay.await.unwrap()))
        }
    };
    (server, things)
}

/// The requests for a thing, with whether each runs its handler.
fn requests(name: &str, place: Place) -> Vec<(&'static str, Value, bool)> {
    let complete = |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": ""}});
    let mut requests = vec![
        ("tools/call", json!({"name": name}), true),
        ("prompts/get", json!({"name": name}), true),
        ("resources/read", json!({"uri": format!("{name}://r")}), true),
        ("resources/read", json!({"uri": format!("{name}://t/1")}), true),
        ("completion/complete", complete(json!({"type": "ref/prompt", "name": name})), false),
        (
            "completion/complete",
            complete(json!({"type": "ref/resource", "uri": format!("{name}://t/{{x}}")})),
            false,
        ),
    ];
    if !matches!(place, Place::Relay(_)) {
        requests.push(("completion/complete", complete(json!({"type": "ref/tool", "name": name})), false));
    }
    requests
}

/// Returns the URI that a notification is about. Of a task that has ended, there may be some later.
fn updated(received: &Value) -> Option<String> {
    received["params"]["uri"].as_str().map(str::to_owned)
}

struct World {
    place: Place,
    decision: Decision,
    ran: Arc<AtomicUsize>,
    client: Client,
}

impl World {
    fn hides(&self) -> bool {
        self.decision == Decision::Hide
    }

    async fn declared(&mut self) {
        let declared = self.client.declared().await.to_string();
        assert_eq!(declared.contains("Ask for secrets."), !self.hides(), "{declared}");
    }

    async fn lists(&mut self) {
        for (method, list) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let result = self.client.call(method, json!({})).await["result"].clone();
            assert!(result[list].to_string().contains("open"), "{method} {result}");
            assert_eq!(result.to_string().contains("secret"), !self.hides(), "{method} {result}");
            if self.client.revision == R5 {
                assert_eq!(result["cacheScope"], "private", "{method}");
            }
        }
    }

    async fn requests(&mut self) {
        for (method, params, runs) in requests("secret", self.place) {
            let before = self.ran.load(Ordering::SeqCst);
            let answer = self.client.call(method, params.clone()).await;
            let ran = self.ran.load(Ordering::SeqCst) - before;
            let at = format!("{method} {params} {answer}");
            assert_eq!(ran, usize::from(runs && self.decision == Decision::Allow), "{at}");
            let error = &answer["error"];
            let message = error["message"].as_str().unwrap_or_default();
            match &self.decision {
                Decision::Allow => {
                    assert!(answer["result"].is_object(), "{at}");
                    if let Some(scope) = answer["result"].get("cacheScope") {
                        assert_eq!(scope, "private", "{at}");
                    }
                }
                Decision::Confirm(_) => {
                    assert!(
                        message.contains("confirmation of the user, whom this request cannot ask"),
                        "{at}"
                    );
                }
                Decision::Limit(_) => assert_eq!(error["data"]["retryAfterMs"], 7000, "{at}"),
                Decision::Deny(reason) => assert!(message.contains(reason), "{at}"),
                Decision::Hide => {
                    let unknown = params.to_string().replace("secret", "absent");
                    let absent = self.client.call(method, serde_json::from_str(&unknown).unwrap()).await;
                    assert_eq!(
                        error.to_string().replace("secret", "absent"),
                        absent["error"].to_string(),
                        "{at}"
                    );
                }
            }
        }
        for (method, params, _) in requests("open", self.place) {
            let answer = self.client.call(method, params.clone()).await;
            assert!(answer["result"].is_object(), "{method} {params} {answer}");
        }
    }

    async fn error_texts(&mut self) {
        for (method, params) in [
            ("tools/call", json!({"name": "secre"})),
            ("prompts/get", json!({"name": "secre"})),
            ("resources/read", json!({"uri": "secre://r"})),
            ("tools/call", json!({"name": "open", "arguments": {"x": "b"}})),
        ] {
            let error = self.client.call(method, params.clone()).await;
            if self.hides() {
                assert!(!error.to_string().contains("secret"), "{method} {params} {error}");
            }
        }
    }

    async fn links(&mut self) {
        for (method, member) in [("tools/call", "content"), ("prompts/get", "messages")] {
            let links = self.client.call(method, json!({"name": "link"})).await;
            let text = links["result"][member].to_string();
            assert!(text.contains("links"), "{links}");
            for uri in ["secret://r", "secret://t/1"] {
                // The first revisions have no links.
                if text.contains(&uri.replace("secret", "open")) {
                    assert_eq!(text.contains(uri), !self.hides(), "{links}");
                }
            }
            if self.hides() {
                assert!(!links.to_string().contains("secret"), "{links}");
            }
        }
    }

    async fn tasks(&mut self) {
        let call = |name: &str| json!({"name": name, "task": {"ttl": 60000}});
        if ![R4, R5].contains(&self.client.revision) {
            return;
        }
        let created = self.client.call("tools/call", call("report")).await["result"].clone();
        let mut result = Value::Null;
        while result["content"].is_null() {
            // The relay polls the server behind.
            tokio::time::sleep(Duration::from_secs(1)).await;
            result = match self.client.is_stateless() {
                true => {
                    let task = json!({"taskId": created["taskId"]});
                    self.client.call("tasks/get", task).await["result"]["result"].clone()
                }
                false => {
                    let task = json!({"taskId": created["task"]["taskId"]});
                    self.client.call("tasks/result", task).await["result"].clone()
                }
            };
        }
        let text = result.to_string();
        assert!(text.contains("open://r") && text.contains("in open://t/1"), "{text}");
        assert_eq!(text.contains("secret"), !self.hides(), "{text}");
        if self.hides() {
            let hidden = self.client.call("tools/call", call("secret_report")).await["error"].to_string();
            let absent = self.client.call("tools/call", call("absent_report")).await["error"].to_string();
            assert_eq!(hidden.replace("secret", "absent"), absent);
        }
    }

    fn logs(&mut self) {
        let received = json!(self.client.received()).to_string();
        assert!(received.contains("open is running"), "{received}");
        assert_eq!(received.contains("secret"), self.decision == Decision::Allow, "{received}");
    }

    /// Subscribes to a resource. Returns the error, or the resources that are granted.
    async fn subscribe(&mut self, uri: &str) -> Result<Value, Value> {
        if !self.client.is_stateless() {
            let answer = self.client.call("resources/subscribe", json!({"uri": uri})).await;
            return answer.get("error").map_or(Ok(json!([uri])), |error| Err(error.clone()));
        }
        let filter = json!({"notifications": {"resourceSubscriptions": ["open://r", uri]}});
        if !matches!(self.decision, Decision::Allow | Decision::Hide) && uri.contains("secret") {
            return Err(self.client.call("subscriptions/listen", filter).await["error"].clone());
        }
        self.client.send("subscriptions/listen", filter).await;
        let acknowledged = self.client.receive().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
        Ok(acknowledged["params"]["notifications"]["resourceSubscriptions"].clone())
    }

    async fn subscriptions(&mut self, things: &Server) {
        let uris = ["open://r", "secret://r", "secret://t/1"];
        for uri in uris {
            let subscribed = self.subscribe(uri).await;
            let granted = subscribed.as_ref().is_ok_and(|granted| granted.to_string().contains(uri));
            let at = format!("{uri} {subscribed:?}");
            match &self.decision {
                _ if uri == uris[0] => assert!(granted, "{at}"),
                Decision::Allow => assert!(granted, "{at}"),
                Decision::Confirm(_) => assert!(at.contains("confirmation of the user"), "{at}"),
                Decision::Limit(_) => {
                    assert_eq!(subscribed.unwrap_err()["data"]["retryAfterMs"], 7000, "{at}");
                }
                Decision::Deny(reason) => assert!(subscribed.is_err() && at.contains(reason), "{at}"),
                Decision::Hide => {
                    let absent = self.subscribe(&uri.replace("secret", "absent")).await;
                    let subscribed = format!("{subscribed:?}").replace("secret", "absent");
                    assert_eq!(subscribed, format!("{absent:?}"));
                    assert!(!granted, "{at}");
                }
            }
        }
        if matches!(self.place, Place::Relay(_)) {
            // The relay subscribes in the background.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        uris.iter().for_each(|uri| things.resource_updated(*uri));
        let expected = if self.decision == Decision::Allow { &uris[..] } else { &uris[..1] };
        // Each of the subscriptions of a client without sessions has the open one.
        let mut received = Vec::new();
        while received.len() < expected.len() {
            received.extend(updated(&self.client.receive().await));
            received.sort_unstable();
            received.dedup();
        }
        self.client.call("tools/list", json!({})).await;
        received.extend(self.client.received().iter().filter_map(updated));
        received.sort_unstable();
        received.dedup();
        assert_eq!(received, expected);
    }
}

fn decisions() -> [Decision; 5] {
    [
        Decision::Allow,
        Decision::Confirm("Really?".to_owned()),
        Decision::Limit(Duration::from_secs(7)),
        Decision::Deny("it is Monday".to_owned()),
        Decision::Hide,
    ]
}

/// The capabilities of a client that follows tasks.
fn following() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

#[tokio::test(start_paused = true)]
async fn no_decision_leaks_anywhere() {
    for place in PLACES {
        for decision in decisions() {
            for revision in ALL {
                println!("{place:?} {decision:?} {revision}");
                let ran = Arc::new(AtomicUsize::new(0));
                let (server, things) = gated(place, &decision, &ran).await;
                let client = Client::open(&server, revision, following()).await;
                let mut world = World { place, decision: decision.clone(), ran, client };
                world.client.log_level("debug").await;
                world.declared().await;
                world.lists().await;
                world.requests().await;
                world.error_texts().await;
                world.links().await;
                world.tasks().await;
                world.logs();
                world.subscriptions(&things).await;
            }
        }
    }
}

/// What is left out of lists, results, suggestions and tasks is not in the audit log: nobody has asked for it.
#[tokio::test(start_paused = true)]
async fn the_audit_log_names_what_was_asked_for() {
    let rules = json!({"rules": [
        {"tools": ["*secret*"], "prompts": ["*secret*"], "resources": ["secret:*"], "decision": "hide"},
        {"decision": "allow"},
    ]});
    for place in PLACES {
        for revision in [R4, R5] {
            let (records, ran) = (Arc::<Mutex<Vec<[String; 2]>>>::default(), Arc::default());
            let written = records.clone();
            let rules = Rules::audited(serde_json::from_value(rules.clone()).unwrap(), move |record| {
                written.lock().unwrap().push([record.name, record.decision].map(str::to_owned));
            });
            let recorded = || std::mem::take(&mut *records.lock().unwrap());
            let (server, _things) = gated_by(place, &ran, rules.unwrap()).await;
            let client = Client::open(&server, revision, following()).await;
            let mut world = World { place, decision: Decision::Hide, ran, client };
            world.declared().await;
            world.lists().await;
            world.error_texts().await;
            world.links().await;
            let named = recorded();
            assert!(named.iter().any(|[name, _]| name == "link"), "{place:?} {named:?}");
            assert!(named.iter().all(|[name, _]| !name.contains("secret")), "{place:?} {named:?}");
            // What is asked for is one line, wherever it is refused.
            let subscribe = ("resources/subscribe", json!({"uri": "secret://r"}), false);
            let subscribe = (revision == R4).then_some(subscribe);
            for (method, params, _) in requests("secret", place).into_iter().chain(subscribe) {
                let answer = world.client.call(method, params.clone()).await;
                let [[name, decision]] = &recorded()[..] else {
                    panic!("{place:?} {method} {params} {answer}");
                };
                assert!(name.starts_with("secret"), "{place:?} {method} {name}");
                assert_eq!(decision, "hide", "{place:?} {method} {params}");
            }
        }
    }
}

/// Every kind of thing twice, of a provider that counts how often it is looked at.
struct Counted(Arc<AtomicUsize>);

impl Provider for Counted {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let capabilities =
            serde_json::from_value(json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}}))
                .unwrap();
        ProviderInfo::new("counted", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        Ok(ProviderPage::default())
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        self.0.fetch_add(1, Ordering::SeqCst);
        let name = target.name();
        if !name.starts_with("open") && !name.starts_with("secret") {
            return Lookup::None;
        }
        Lookup::Found(match target {
            Target::Tool(_) => Tool::new(name, JsonObject::new()).into(),
            Target::Prompt(_) => Prompt::new(name).into(),
            Target::Resource(_) => Resource::new(name, name).into(),
            _ => ResourceTemplate::new(name, name).into(),
        })
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        match part {
            ReportPart::Names(_) => vec!["open".to_owned(), "secret".to_owned()],
            _ => Vec::new(),
        }
    }

    async fn handle(&self, _: Cx) -> Outcome {
        unreachable!("nothing that is shown is asked for")
    }
}

/// The time that an answer takes must not tell what is hidden from what is not there.
#[tokio::test]
async fn what_is_hidden_is_looked_for_as_often_as_what_is_not_there() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let server = Server::new("s", "0").provider(Counted(lookups.clone())).gate(gate(Decision::Hide));
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        let mut counted = async |method: &str, params: Value| {
            let before = lookups.load(Ordering::SeqCst);
            let answer = client.call(method, params).await;
            (lookups.load(Ordering::SeqCst) - before, answer["error"].to_string())
        };
        for (method, params, _) in requests("secret", Place::Outer) {
            let absent = params.to_string().replace("secret", "absent");
            let hidden = counted(method, params.clone()).await;
            let absent = counted(method, serde_json::from_str(&absent).unwrap()).await;
            assert_eq!(hidden.0, absent.0, "{method} {params}");
            assert_eq!(hidden.1.replace("secret", "absent"), absent.1, "{method} {params}");
        }
    }
}

/// A search in place of the list of tools: it finds nothing that is hidden, and calls nothing that is denied.
#[tokio::test]
async fn no_decision_leaks_through_a_search() {
    for is_inner in [false, true] {
        for decision in decisions() {
            for revision in ALL {
                let ran = Arc::new(AtomicUsize::new(0));
                let (things, outer) = (things(&ran), Server::new("outer", "0").logging());
                let server = match is_inner {
                    true => outer.provider(ToolSearch::new(things.gate(gate(decision.clone())))),
                    false => outer.provider(ToolSearch::new(things)).gate(gate(decision.clone())),
                };
                let mut client = Client::open(&server, revision, json!({})).await;
                client.log_level("debug").await;
                let hides = decision == Decision::Hide;
                let list = client.call("tools/list", json!({})).await;
                assert!(!list.to_string().contains("secret"), "{list}");
                let called = async |client: &mut Client, name: &str, arguments: Value| {
                    client.call("tools/call", json!({"name": name, "arguments": arguments})).await
                };
                for query in ["secret", "", "open secret", "secre"] {
                    let found =
                        called(&mut client, "search_tools", json!({"query": query, "limit": 50})).await;
                    assert!(found["result"].is_object(), "{found}");
                    assert_eq!(found.to_string().contains("secret"), !hides, "{decision:?} {query} {found}");
                }
                let direct = called(&mut client, "secret", json!({})).await["error"].to_string();
                let absent = called(&mut client, "absent", json!({})).await["error"].to_string();
                assert_eq!(direct.replace("secret", "absent"), absent, "{decision:?}");
                let behind = called(&mut client, "call_tool", json!({"name": "secret"})).await;
                assert_eq!(ran.load(Ordering::SeqCst), usize::from(decision == Decision::Allow), "{behind}");
                assert_eq!(behind.get("error").is_none(), decision == Decision::Allow, "{behind}");
                if hides {
                    let absent = called(&mut client, "call_tool", json!({"name": "absent"})).await;
                    let behind = behind["error"].to_string().replace("secret", "absent");
                    assert_eq!(behind, absent["error"].to_string());
                    let received = client.received();
                    assert!(!json!(received).to_string().contains("secret"), "{received:?}");
                }
            }
        }
    }
}

/// What was listed and read for one caller is not shown to another one, in any order.
#[tokio::test]
async fn nothing_is_kept_for_another_caller() {
    for place in PLACES {
        for revision in [R4, R5] {
            let ran = Arc::new(AtomicUsize::new(0));
            let (server, _things) = gated_by(place, &ran, |request: &GateRequest<'_>| {
                let is_secret = request.name().contains("secret");
                let hides = is_secret && request.identity() != Principal::Named("ann");
                if hides { Decision::Hide } else { Decision::Allow }
            })
            .await;
            for caller in ["ann", "bob", "ann", "bob"] {
                let caller = (caller, Caller::new().principal(caller));
                let mut client = Client::over(Raw::known(&server, caller.1), revision, json!({})).await;
                for (method, params) in [
                    ("tools/list", json!({})),
                    ("prompts/list", json!({})),
                    ("resources/list", json!({})),
                    ("resources/templates/list", json!({})),
                ] {
                    let answer = client.call(method, params).await.to_string();
                    assert_eq!(answer.contains("secret"), caller.0 == "ann", "{place:?} {method} {answer}");
                }
                for (method, params, _) in requests("secret", place) {
                    let answer = client.call(method, params).await;
                    assert_eq!(
                        answer.get("error").is_none(),
                        caller.0 == "ann",
                        "{place:?} {method} {answer}"
                    );
                }
            }
        }
    }
}
