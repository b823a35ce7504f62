//! For each decision, each use, each place of the gate and each era: what is hidden is nowhere, and what is denied does not run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    relay::Relay,
    server::{CacheHint, Decision, GateRequest, Prefix, prompt, resource, template, tool},
    types::schema::{CacheScope, ContentBlock},
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R4, R5};

/// Where the gate is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// On the server that has the entries.
    Own,
    /// On the server that they are mounted in.
    Outer,
    /// On the server that is mounted.
    Inner,
    /// On the server in front of a relay.
    Relay(&'static str),
}

const PLACES: [Place; 5] = [Place::Own, Place::Outer, Place::Inner, Place::Relay(R4), Place::Relay(R5)];

/// Every kind of thing twice, and a tool with a link to a secret.
fn things(ran: &Arc<AtomicUsize>) -> Server {
    let mut server = Server::new("s", "0").tool_completion().logging();
    for name in ["open", "secret"] {
        let ran = move || {
            let ran = ran.clone();
            move || {
                ran.fetch_add(usize::from(name == "secret"), Ordering::SeqCst);
                async { "ran".to_owned() }
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
    server.tool(tool("link", || async {
        let link = |uri: &str| -> ContentBlock {
            serde_json::from_value(json!({"type": "resource_link", "uri": uri, "name": "linked"})).unwrap()
        };
        vec![link("open://r"), link("secret://r"), ContentBlock::text("links")]
    }))
}

fn gate(decision: Decision) -> impl Fn(&GateRequest<'_>) -> Decision + Send + Sync + 'static {
    move |request| if request.name().contains("secret") { decision.clone() } else { Decision::Allow }
}

async fn gated(place: Place, decision: &Decision, ran: &Arc<AtomicUsize>) -> (Server, Server) {
    let things = things(ran);
    let gate = gate(decision.clone());
    let outer = || Server::new("outer", "0").tool_completion().logging();
    let server = match place {
        Place::Own => things.clone().gate(gate),
        Place::Outer => outer().mount(Prefix::none(), things.clone()).gate(gate),
        Place::Inner => outer().mount(Prefix::none(), things.clone().gate(gate)),
        Place::Relay(revision) => {
            let behind = things.clone();
            let client = pintle::Client::new("relay", "0").revisions([revision.parse().unwrap()]);
            let relay = Relay::connect(client, move || {
                let transport = behind.in_process().map_err(std::io::Error::other);
                async { transport }
            });
            outer().provider(relay.await.unwrap()).gate(gate)
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
        let links = self.client.call("tools/call", json!({"name": "link"})).await;
        let text = links["result"]["content"].to_string();
        assert!(text.contains("links"), "{links}");
        // The first revisions have no links.
        if text.contains("open://r") {
            assert_eq!(text.contains("secret://r"), !self.hides(), "{links}");
        }
    }

    async fn subscriptions(&mut self, things: &Server) {
        let uris = ["open://r", "secret://r", "secret://t/1"];
        self.client.listen(&uris).await;
        if matches!(self.place, Place::Relay(_)) {
            // The relay subscribes in the background.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        uris.iter().for_each(|uri| things.resource_updated(*uri));
        let expected = if self.decision == Decision::Allow { &uris[..] } else { &uris[..1] };
        let mut heard = vec![self.client.hear().await];
        for _ in 1..expected.len() {
            heard.push(self.client.hear().await);
        }
        self.client.call("tools/list", json!({})).await;
        heard.extend(self.client.heard());
        let mut heard: Vec<_> = heard.iter().map(|heard| heard["params"]["uri"].as_str().unwrap()).collect();
        heard.sort_unstable();
        assert_eq!(heard, expected);
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

#[tokio::test(start_paused = true)]
async fn no_decision_leaks_anywhere() {
    for place in PLACES {
        for decision in decisions() {
            for revision in ALL {
                println!("{place:?} {decision:?} {revision}");
                let ran = Arc::new(AtomicUsize::new(0));
                let (server, things) = gated(place, &decision, &ran).await;
                let client = Client::open(&server, revision, json!({})).await;
                let mut world = World { place, decision: decision.clone(), ran, client };
                world.client.log_level("debug").await;
                world.lists().await;
                world.requests().await;
                world.error_texts().await;
                world.links().await;
                if world.hides() {
                    let heard = world.client.heard();
                    assert!(!json!(heard).to_string().contains("secret"), "{heard:?}");
                }
                world.subscriptions(&things).await;
            }
        }
    }
}
