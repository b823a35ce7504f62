//! URIs that cost more to look up than to send: how many look-ups there are, and that they do not begin before the limits.

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    Server,
    server::{
        Cx, Decision, GateRequest, ListKind, Lookup, Outcome, PageRequest, Provider, ProviderChanges,
        ProviderInfo, ProviderPage, ProviderSubscription, RequestError, Scope, Target, Watch, WatchFuture,
    },
    types::{
        RpcError,
        schema::{Resource, ResourcesCapability, ServerCapabilities},
    },
};
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5};

/// A provider of everything below `deep://x`, which counts how often it is asked.
#[derive(Default)]
struct Counting {
    asked: AtomicUsize,
    changes: Mutex<Option<ProviderChanges>>,
}

impl Counting {
    fn taken(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    fn updated(&self, uri: &str) {
        self.changes.lock().unwrap().as_ref().unwrap().resource_updated(uri);
    }
}

impl Provider for Counting {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.completions = Some(Default::default());
        capabilities.resources.insert(ResourcesCapability::default()).subscribe = Some(true);
        ProviderInfo::new("counting", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        Ok(ProviderPage::default())
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (target.name() == "deep://x").then(|| Resource::new("deep://x", "x")).into()
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("nothing is read"))
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for Counting {
    fn attach(&self, changes: ProviderChanges) {
        *self.changes.lock().unwrap() = Some(changes);
    }

    fn subscribe(
        &self,
        _: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        let mut subscription = ProviderSubscription::new();
        for uri in uris.into_iter().filter(|uri| uri.contains("refused")) {
            subscription.refuse(uri, RpcError::internal("it cannot be watched"));
        }
        Box::pin(ready(Ok(subscription)))
    }
}

fn counting() -> (Server, Arc<Counting>) {
    let provider = Arc::new(Counting::default());
    let gate = |_: &GateRequest<'_>| Decision::Allow;
    (Server::new("s", "0").provider(provider.clone()).gate(gate), provider)
}

fn deep(segments: usize) -> String {
    "deep://x".to_owned() + &"/a".repeat(segments)
}

async fn listen(client: &mut Client, uris: &[String]) -> Value {
    let filter = json!({"notifications": {"resourceSubscriptions": uris}});
    client.send("subscriptions/listen", filter).await;
    client.recv().await
}

#[tokio::test(start_paused = true)]
async fn a_long_uri_is_refused_before_it_is_looked_up() {
    let (server, provider) = counting();
    let long = |bytes: usize| format!("deep://{}", "a".repeat(bytes - 7));
    for revision in [R4, R5] {
        let mut client = Client::open(&server, revision, json!({})).await;
        provider.taken();
        let argument = json!({"name": "x", "value": ""});
        let mut requests = vec![
            ("resources/read", json!({"uri": long(8193)})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": long(8193)}, "argument": argument}),
            ),
        ];
        if revision == R4 {
            requests.push(("resources/subscribe", json!({"uri": long(2049)})));
            requests.push(("resources/subscribe", json!({"uri": deep(63)})));
        } else {
            let listen = |uris: Vec<String>| json!({"notifications": {"resourceSubscriptions": uris}});
            requests.push(("subscriptions/listen", listen(vec![deep(1), long(2049)])));
            requests.push(("subscriptions/listen", listen(vec![deep(1), deep(63)])));
            requests.push(("subscriptions/listen", listen(vec![long(1000); 1100])));
        }
        for (method, params) in requests {
            let answer = client.call(method, params).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
            assert_eq!(provider.taken(), 0, "{method} {answer}");
        }
        client.call("resources/read", json!({"uri": long(8192)})).await;
        assert!(provider.taken() > 0, "it is looked up");
    }
}

#[tokio::test(start_paused = true)]
async fn the_look_ups_of_a_watched_uri_grow_with_its_segments_to_a_limit() {
    let (server, provider) = counting();
    let mut steps = Vec::new();
    for segments in [15, 30, 60] {
        let mut client = Client::open(&server, R4, json!({})).await;
        provider.taken();
        let watched = client.call("resources/subscribe", json!({"uri": deep(segments)})).await;
        assert!(watched["result"].is_object(), "{watched}");
        steps.push(provider.taken());
    }
    assert!(steps[1] <= 2 * steps[0] && steps[2] <= 2 * steps[1], "{steps:?}");
    assert!(steps[2] <= 6 * 64, "{steps:?}");
}

#[tokio::test(start_paused = true)]
async fn the_look_ups_of_a_subscription_grow_with_its_list_and_no_faster() {
    let (server, provider) = counting();
    let mut steps = Vec::new();
    for count in [125, 250, 500] {
        let mut client = Client::open(&server, R5, json!({})).await;
        let name = |n: usize| if n.is_multiple_of(5) { "refused" } else { "open" };
        let uris: Vec<String> = (0..count).map(|n| format!("deep://x/{}/{n}", name(n))).collect();
        provider.taken();
        let granted = listen(&mut client, &uris).await;
        // What the provider refuses is left out.
        let granted = &granted["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(granted.as_array().map(Vec::len), Some(count / 5 * 4), "{granted}");
        assert!(!granted.to_string().contains("refused"), "{granted}");
        steps.push(provider.taken());
    }
    assert!(steps[1] <= 2 * steps[0] && steps[2] <= 2 * steps[1], "{steps:?}");
    assert!(steps[0] <= 125 * 24, "{steps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_notification_costs_the_same_however_much_is_watched() {
    let (server, provider) = counting();
    let mut steps = Vec::new();
    for count in [250, 500] {
        let mut client = Client::open(&server, R5, json!({})).await;
        let uris: Vec<String> = (0..count).map(|n| format!("deep://x/{n}")).collect();
        let granted = listen(&mut client, &uris).await;
        assert_eq!(granted["method"], "notifications/subscriptions/acknowledged", "{granted}");
        provider.taken();
        provider.updated("deep://x/7/a");
        assert_eq!(client.receive().await["params"]["uri"], "deep://x/7/a");
        steps.push(provider.taken());
        // A server behind may notify of anything: what is too long to be judged is not told, and not looked up.
        provider.updated(&format!("deep://x/7{}", "/a".repeat(20_000)));
        provider.updated("deep://x/8");
        assert_eq!(client.receive().await["params"]["uri"], "deep://x/8");
        assert!(provider.taken() <= steps[0], "{steps:?}");
    }
    assert_eq!(steps[0], steps[1], "{steps:?}");
    assert!(steps[0] <= 8, "{steps:?}");
}
