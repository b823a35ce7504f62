//! Providers behind gates that fail, know nothing of their entries, or list without an end.

use std::{
    future::{pending, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    Server,
    server::{
        Access, Authenticated, Caller, Cx, Decision, Entry, GateRequest, ListKind, Lookup, Mount, Outcome,
        PageRequest, ProvidedEntry, Provider, ProviderInfo, ProviderPage, ProviderSubscription, RequestError,
        Rules, Scope, Target, ToolSearch, Transform, Watch, WatchFuture, resource, tool,
    },
    types::{
        RpcError,
        schema::{ContentBlock, ResourcesCapability, ServerCapabilities, ToolsCapability},
    },
};
use serde_json::{Value, json};

use crate::support::{
    eras::{Client, R4, R5, not_found},
    line_client::Raw,
};

/// What a provider answers when it is asked for an entry.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// It fails.
    Failed,
    /// There is one of this name, of which nothing more is known.
    Unlisted,
    /// It has to read its lists first, of which those of resources never come.
    Stale,
}

/// A provider whose list of tools has no end.
struct Odd {
    found: Found,
    /// The tools of each page.
    page: usize,
    lists: AtomicUsize,
    /// The resources that it was asked to watch.
    watched: Mutex<Vec<String>>,
}

impl Odd {
    fn new(found: Found, page: usize) -> Arc<Self> {
        Arc::new(Self { found, page, lists: AtomicUsize::new(0), watched: Mutex::default() })
    }
}

impl Provider for Odd {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        let resources = capabilities.resources.insert(ResourcesCapability::default());
        resources.subscribe = Some(true);
        ProviderInfo::new("odd", capabilities)
    }

    async fn list(&self, _: Cx, list: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        if list != ListKind::Tools {
            if self.found == Found::Stale {
                self.lists.fetch_add(1, Ordering::SeqCst);
                pending::<()>().await;
            }
            return Ok(ProviderPage::default());
        }
        let number = self.lists.fetch_add(1, Ordering::SeqCst);
        let tools = (0..self.page).map(|at| json!({"name": format!("t{number}-{at}"), "inputSchema": {}}));
        Ok(ProviderPage::of(tools)?.next(number.to_string()))
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        match self.found {
            Found::Failed => Lookup::Failed(RequestError::protocol(RpcError::internal("it is down"))),
            Found::Unlisted => Lookup::Found(ProvidedEntry::unlisted()),
            Found::Stale => Lookup::Stale(None),
        }
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("it was called"))
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for Odd {
    fn watched(&self, uri: &str) {
        self.watched.lock().unwrap().push(format!("watch {uri}"));
    }

    fn subscribe(
        &self,
        _: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        self.watched.lock().unwrap().extend(uris.iter().map(|uri| format!("subscribe {uri}")));
        Box::pin(ready(Ok(ProviderSubscription::new())))
    }
}

fn gate(request: &GateRequest<'_>) -> Decision {
    if request.name().contains("secret") { Decision::Hide } else { Decision::Allow }
}

async fn error(client: &mut Client, method: &str, params: Value) -> String {
    client.call(method, params).await["error"].to_string()
}

#[tokio::test]
async fn that_a_provider_fails_is_not_known_of_what_is_hidden() {
    let server = Server::new("s", "0").provider(Odd::new(Found::Failed, 1)).gate(gate);
    for revision in [R4, R5] {
        let mut client = Client::open(&server, revision, json!({})).await;
        let open = error(&mut client, "tools/call", json!({"name": "open"})).await;
        assert!(open.contains("it is down"), "{open}");
        let hidden = error(&mut client, "tools/call", json!({"name": "secret"})).await;
        assert!(hidden.contains("no such tool: `secret`") && !hidden.contains("down"), "{hidden}");
    }
    let mut client = Client::open(&server, R4, json!({})).await;
    let open = error(&mut client, "resources/subscribe", json!({"uri": "open://r"})).await;
    assert!(open.contains("it is down"), "{open}");
    let hidden = client.call("resources/subscribe", json!({"uri": "secret://r"})).await["error"].clone();
    assert_eq!(hidden["code"], not_found(&client), "{hidden}");
    // A subscription to many resources does not depend on one provider.
    let server = server.resource(resource("own://r", "own", || async { "" }));
    let mut client = Client::open(&server, R5, json!({})).await;
    let filter = json!({"notifications": {"resourceSubscriptions": ["own://r", "open://r", "secret://r"]}});
    client.send("subscriptions/listen", filter).await;
    let granted = client.receive().await["params"]["notifications"]["resourceSubscriptions"].clone();
    assert_eq!(granted, json!(["own://r"]));
    // Nor does a search tell why a tool cannot be found.
    let search = ToolSearch::new(Odd::new(Found::Failed, 1));
    let mut client = Client::open(&Server::new("s", "0").provider(search).gate(gate), R5, json!({})).await;
    let hidden =
        error(&mut client, "tools/call", json!({"name": "call_tool", "arguments": {"name": "x"}})).await;
    assert!(hidden.contains("no such tool: `x`") && !hidden.contains("down"), "{hidden}");
}

#[tokio::test]
async fn that_a_provider_fails_is_not_known_of_a_hidden_mount() {
    for (is_hidden, expected) in [(false, "it is down"), (true, "no such tool: `odd_x`")] {
        let mount = Mount::new("odd", Odd::new(Found::Failed, 1)).requires(["odd"]);
        let mount = if is_hidden { mount.hidden() } else { mount };
        let server = Server::new("s", "0").tool(tool("own", || async { "own" })).provider(mount);
        for revision in [R4, R5] {
            let by = async |rights: &'static [&'static str]| {
                let caller = Authenticated::new("ann").rights(|right| rights.contains(&right));
                Client::over(Raw::known(&server, Caller::new().with(caller)), revision, json!({})).await
            };
            let named = json!({"name": "odd_x"});
            let known = error(&mut by(&["odd"]).await, "tools/call", named.clone()).await;
            assert!(known.contains("it is down"), "{known}");
            let other = error(&mut by(&[]).await, "tools/call", named).await;
            assert!(other.contains(expected), "{other}");
        }
    }
}

#[tokio::test]
async fn a_resource_of_which_nothing_is_known_cannot_be_watched() {
    let odd = Odd::new(Found::Unlisted, 1);
    let allow = |_: &GateRequest<'_>| Decision::Allow;
    let server = Server::new("s", "0").provider(odd.clone()).gate(allow);
    let mut client = Client::open(&server, R4, json!({})).await;
    let refused = client.call("resources/subscribe", json!({"uri": "any://r"})).await["error"].clone();
    assert_eq!(refused["code"], not_found(&client), "{refused}");
    assert_eq!(*odd.watched.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_transform_removes_is_not_watched() {
    for revision in [R4, R5] {
        let odd = Odd::new(Found::Unlisted, 1);
        let changed = Transform::new(odd.clone()).hide(ListKind::Resources, "secret://*");
        let server = Server::new("s", "0").provider(changed);
        let mut client = Client::open(&server, revision, json!({})).await;
        let uris = ["secret://r", "open://r"];
        if revision == R5 {
            let filter = json!({"notifications": {"resourceSubscriptions": uris}});
            client.send("subscriptions/listen", filter).await;
            client.receive().await;
        } else {
            for uri in uris {
                client.call("resources/subscribe", json!({"uri": uri})).await;
            }
        }
        let watched = odd.watched.lock().unwrap().join(", ");
        assert!(watched.contains("open://r") && !watched.contains("secret://r"), "{revision}: {watched}");
    }
}

#[tokio::test]
async fn a_search_reads_a_bounded_list_and_returns_a_bounded_number() {
    for (page, lists, found) in [(100, 50, 50), (0, 200, 0)] {
        let odd = Odd::new(Found::Unlisted, page);
        let server = Server::new("s", "0").provider(ToolSearch::new(odd.clone()));
        let mut client = Client::open(&server, R5, json!({})).await;
        let arguments = json!({"query": "", "limit": 1_000_000});
        let result = client.call("tools/call", json!({"name": "search_tools", "arguments": arguments})).await;
        let text: Value =
            serde_json::from_str(result["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(odd.lists.load(Ordering::SeqCst), lists);
        assert_eq!(
            (text["tools"].as_array().unwrap().len(), &text["matches"]),
            (found, &json!(page * lists))
        );
    }
}

/// Nobody is notified of what the rules deny meanwhile.
#[tokio::test]
async fn a_subscription_ends_with_the_rules_that_allowed_it() {
    let set = |rules: Value| serde_json::from_value(json!({ "rules": rules })).unwrap();
    for revision in [R4, R5] {
        let rules = Rules::new(set(json!([{"decision": "allow"}]))).unwrap();
        let server = ["one://r", "two://r"]
            .into_iter()
            .fold(Server::new("s", "0"), |server, uri| server.resource(resource(uri, uri, || async { "" })));
        let server = server.gate(rules.clone());
        let mut client = Client::open(&server, revision, json!({})).await;
        if revision == R5 {
            let filter = json!({"notifications": {"resourceSubscriptions": ["one://r", "two://r"]}});
            client.send("subscriptions/listen", filter).await;
            client.receive().await;
        } else {
            for uri in ["one://r", "two://r"] {
                client.call("resources/subscribe", json!({"uri": uri})).await;
            }
        }
        let denied = json!([{"resources": ["one://*"], "decision": "deny"}, {"decision": "allow"}]);
        rules.replace(set(denied)).unwrap();
        server.resource_updated("one://r");
        server.resource_updated("two://r");
        assert_eq!(client.receive().await["params"]["uri"], "two://r", "{revision}");
    }
}

/// Until the lists of a provider are read, gates decide by the URIs of links. Nobody waits for them for ever, or again and again.
#[tokio::test(start_paused = true)]
async fn links_to_a_provider_that_cannot_be_listed_are_judged_by_their_uris() {
    let linked = || async {
        let link = |uri: &str| {
            serde_json::from_value(json!({"type": "resource_link", "uri": uri, "name": "l"})).unwrap()
        };
        ["open://r", "secret://r"].map(link).to_vec() as Vec<ContentBlock>
    };
    for revision in [R4, R5] {
        let odd = Odd::new(Found::Stale, 1);
        let server = Server::new("s", "0").tool(tool("links", linked)).provider(odd.clone()).gate(gate);
        let mut client = Client::open(&server, revision, json!({})).await;
        for (waited, lists) in [(5, 1), (0, 1), (0, 1)] {
            let started = tokio::time::Instant::now();
            let result = client.call("tools/call", json!({"name": "links"})).await["result"].clone();
            assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{revision} {result}");
            assert_eq!(result["content"][0]["uri"], "open://r");
            assert_eq!((started.elapsed().as_secs(), odd.lists.load(Ordering::SeqCst)), (waited, lists));
        }
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        client.call("tools/call", json!({"name": "links"})).await;
        assert_eq!(odd.lists.load(Ordering::SeqCst), 2);
    }
}

/// A tool is replaced by another one of its name after the gates have judged it.
#[tokio::test]
async fn what_was_judged_is_what_runs() {
    for revision in [R4, R5] {
        let inner = Server::new("inner", "0").tool(tool("work", || async { "reads" }).read_only());
        let changed = inner.clone();
        let outer = Server::new("outer", "0").mount("i", inner).gate(move |request: &GateRequest<'_>| {
            let Entry::Tool(judged) = request.entry else { return Decision::Allow };
            if request.access == Access::Call && changed.remove_tool("work") {
                changed.add_tool(tool("work", || async { "writes" })).unwrap();
            }
            let is_read_only = judged.annotations.as_ref().and_then(|hints| hints.read_only_hint);
            if is_read_only == Some(true) { Decision::Allow } else { Decision::Deny("it writes".to_owned()) }
        });
        let mut client = Client::open(&outer, revision, json!({})).await;
        assert_eq!(client.tool("i_work").await, "reads", "{revision}");
        let denied = error(&mut client, "tools/call", json!({"name": "i_work"})).await;
        assert!(denied.contains("it writes"), "{denied}");
    }
}
