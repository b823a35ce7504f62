//! A mount is live: what changes in the mounted server changes in the outer one.

use std::{
    future::ready,
    sync::{Arc, Mutex},
};

use pintle::{
    Server,
    server::{
        Cx, ListKind, Lookup, Next, Outcome, PageRequest, Prefix, Provider, ProviderInfo, ProviderPage,
        ProviderSubscription, RequestError, Scope, Target, Watch, WatchFuture, around, prompt, resource,
        tool,
    },
    types::{
        RpcError,
        schema::{ResourcesCapability, ServerCapabilities},
    },
};
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, each, not_found};

async fn tools(client: &mut Client) -> Vec<String> {
    let listed = client.call("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_that_come_and_go_are_announced_and_used() {
    let git = Server::new("git", "1").tool(tool("status", || async { "clean" }));
    let desk = Server::new("desk", "1").mount("code", Server::new("code", "1").mount("git", git.clone()));
    each(&desk, &[R4, R5], json!({}), async |client| {
        client.listen(&[]).await;
        assert_eq!(tools(client).await, ["code_git_status"]);
        git.add_tool(tool("push", || async { "pushed" })).unwrap();
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        assert_eq!(tools(client).await, ["code_git_status", "code_git_push"]);
        assert_eq!(client.tool("code_git_push").await, "pushed");
        assert!(git.remove_tool("push"));
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        let gone = client.call("tools/call", json!({"name": "code_git_push"})).await;
        assert_eq!(gone["error"]["message"], "no such tool: `code_git_push`", "{gone}");
        git.tools_changed();
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_removed_is_gone_for_clients_and_can_come_back() {
    let git = || Server::new("git", "1").tool(tool("status", || async { "clean" }));
    let first = git();
    let desk = Server::new("desk", "1").mount("git", first.clone()).mount("notes", git());
    each(&desk, &[R4, R5], json!({}), async |client| {
        client.listen(&[]).await;
        assert!(desk.remove_provider("git") && !desk.remove_provider("git"));
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        assert_eq!(tools(client).await, ["notes_status"]);
        let gone = client.call("tools/call", json!({"name": "git_status"})).await;
        assert_eq!(gone["error"]["message"], "no such tool: `git_status`", "{gone}");
        // What changes in it is no change of this server any more.
        first.tools_changed();
        desk.add_provider(pintle::server::Mount::new("git", git())).unwrap();
        assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
        assert_eq!(client.tool("git_status").await, "clean");
        assert_eq!(client.received(), Vec::<Value>::new());
    })
    .await;
}

#[tokio::test]
async fn names_lints_and_queries_include_mounted_servers() {
    let git = Server::new("git", "1")
        .tool(tool("status", || async { "clean" }))
        .tool(tool("statuz", || async { "secret" }).requires(["admin"]).hidden());
    let desk = Server::new("desk", "1").mount("git", git);
    let warning = "`git`: the tool `status` has no description";
    assert!(desk.lint().iter().any(|lint| lint.starts_with(warning)), "{:?}", desk.lint());
    assert!(desk.tools_where(|tool: &pintle::types::schema::Tool| tool.name == "git_status").len() == 1);
    let nobody = pintle::server::Caller::new();
    let raw = crate::support::line_client::Raw::known(&desk, nobody);
    let mut client = Client::over(raw, R4, json!({})).await;
    let unknown = client.call("tools/call", json!({"name": "git_statuz2"})).await;
    assert_eq!(
        unknown["error"]["message"], "no such tool: `git_statuz2`; did you mean `git_status`?",
        "a hidden one is not suggested"
    );
}

#[tokio::test]
async fn updates_of_resources_reach_their_subscribers_under_their_outer_uris() {
    let git = Server::new("git", "1")
        .resource(resource("git://head", "head", || async { "abc" }))
        .resource(resource("git://secret", "secret", || async { "x" }).requires(["admin"]).hidden());
    let plain = Server::new("desk", "1").mount("git", git.clone());
    let spaced = Server::new("desk", "1")
        .mount("code", Server::new("code", "1").mount(Prefix::new("git").uris(), git.clone()));
    for (desk, uri) in [(&plain, "git://head"), (&spaced, "git://git/head")] {
        each(desk, &[R4, R5], json!({}), async |client| {
            client.listen(&[uri, "git://secret", "git://git/secret"]).await;
            git.resource_updated("git://other");
            git.resource_updated("git://head");
            let received: Value = client.receive().await;
            assert_eq!(received["method"], "notifications/resources/updated");
            assert_eq!(received["params"]["uri"], uri);
        })
        .await;
    }
}

#[tokio::test]
async fn updates_of_hidden_resources_are_withheld() {
    use pintle::server::{Authenticated, Caller};
    let git = Server::new("git", "1")
        .resource(resource("git://head", "head", || async { "abc" }))
        .resource(resource("git://secret", "secret", || async { "x" }).requires(["admin"]).hidden())
        .resource(resource("git://filtered", "filtered", || async { "x" }))
        .filter(|_, entry| !matches!(entry, pintle::server::Entry::Resource(resource) if resource.name == "filtered"));
    let desk = Server::new("desk", "1").mount("git", git.clone());
    for revision in [R4, R5] {
        let caller = Caller::new().with(Authenticated::new("ann").rights(|_| false));
        let raw = crate::support::line_client::Raw::known(&desk, caller);
        let mut client = Client::over(raw, revision, json!({})).await;
        let uris = ["git://secret", "git://filtered", "git://head"];
        // Without a session, the subscription is granted without what is hidden.
        let refused = if client.is_stateless() { 0 } else { 2 };
        for uri in &uris[..refused] {
            let error = client.call("resources/subscribe", json!({"uri": uri})).await["error"].clone();
            assert_eq!(error["code"], not_found(&client), "{uri} {error}");
        }
        client.listen(&uris[refused..]).await;
        for uri in ["git://secret", "git://filtered", "git://secret/part", "git://head"] {
            git.resource_updated(uri);
        }
        assert_eq!(client.receive().await["params"]["uri"], "git://head");
    }
}

#[tokio::test]
async fn capabilities_and_instructions_follow_the_mounted_server() {
    let git =
        Server::new("git", "1").instructions("Commit often.").tool(tool("status", || async { "clean" }));
    let desk = Server::new("desk", "1").instructions("Be tidy.").mount("git", git.clone());
    let discover = async || {
        let mut client = Client::open(&desk, R5, json!({})).await;
        client.call("server/discover", json!({})).await["result"].clone()
    };
    let found = discover().await;
    assert_eq!(found["instructions"], "Be tidy.\n\n## git\n\nCommit often.");
    assert!(found["capabilities"].get("prompts").is_none(), "{found}");
    git.add_prompt(prompt("review", || async { "Review it." })).unwrap();
    let git = git.logging().instructions("Commit seldom.");
    let found = discover().await;
    assert_eq!(found["capabilities"]["prompts"], json!({"listChanged": true}), "{found}");
    assert_eq!(found["capabilities"]["logging"], json!({}), "{found}");
    assert_eq!(found["instructions"], "Be tidy.\n\n## git\n\nCommit seldom.");
    let mut session = crate::support::line_client::Raw::new(&desk);
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
    session.request("initialize", params).await;
    let opened = session.recv().await;
    assert_eq!(opened["result"]["instructions"], "Be tidy.\n\n## git\n\nCommit seldom.");
    drop(git);
}

/// A provider that notes what is watched.
struct Noting(Arc<Mutex<Vec<String>>>);

impl Provider for Noting {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut resources = ResourcesCapability::default();
        resources.subscribe = Some(true);
        let mut capabilities = ServerCapabilities::default();
        capabilities.resources = Some(resources);
        ProviderInfo::new("noting", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        Ok(ProviderPage::default())
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        Lookup::None
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("nothing is here"))
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

/// Notes when it is dropped.
struct Held(Arc<Mutex<Vec<String>>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("released".to_owned());
    }
}

impl Watch for Noting {
    fn subscribe(
        &self,
        cx: Cx,
        _: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        let mut subscription = ProviderSubscription::new();
        if cx.method() == "resources/subscribe" && cx.params().get("_meta").is_some() {
            subscription.hold(Held(self.0.clone()));
        }
        Box::pin(ready(Ok(subscription)))
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        if cx.params().get("_meta").is_some() {
            self.0.lock().unwrap().push(format!("ended {uri}"));
        }
        Box::pin(ready(()))
    }

    fn watched(&self, uri: &str) {
        self.0.lock().unwrap().push(format!("+{uri}"));
    }

    fn unwatched(&self, uri: &str) {
        self.0.lock().unwrap().push(format!("-{uri}"));
    }
}

#[tokio::test]
async fn a_provider_learns_what_is_watched_while_somebody_does() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let noted = || std::mem::take(&mut *log.lock().unwrap());
    let git = Server::new("git", "1").provider(Noting(log.clone()));
    let desk = Server::new("desk", "1").mount(Prefix::new("git").uris(), git.clone());
    let other = Server::new("other", "1").mount("git", git.clone());
    let settle = async || {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    for revision in [R4, R5] {
        let mut first = Client::open(&desk, revision, json!({})).await;
        first.listen(&["a://git/1", "a://elsewhere/1"]).await;
        assert_eq!(noted(), ["+a://1"], "{revision}");
        let mut second = Client::open(&other, revision, json!({})).await;
        second.listen(&["a://1", "a://2"]).await;
        assert_eq!(noted(), ["+a://2"], "the first is watched already");
        drop(first);
        settle().await;
        assert!(noted().is_empty(), "the second still watches it");
        if revision == R4 {
            second.call("resources/unsubscribe", json!({"uri": "a://2"})).await;
            assert_eq!(noted(), ["-a://2"]);
        }
        drop(second);
        settle().await;
        let mut left = noted();
        left.sort();
        assert_eq!(left, if revision == R4 { vec!["-a://1"] } else { vec!["-a://1", "-a://2"] });
    }
    // One that is added later learns what is watched already.
    let mut client = Client::open(&git, R5, json!({})).await;
    client.listen(&["a://3"]).await;
    let late = Arc::new(Mutex::new(Vec::new()));
    git.add_provider(Noting(late.clone())).unwrap();
    assert_eq!(*late.lock().unwrap(), ["+a://3"]);
}

#[tokio::test]
async fn a_subscription_that_a_layer_does_not_let_end_goes_on_at_its_provider() {
    for inner in [true, false] {
        let log = Arc::new(Mutex::new(Vec::new()));
        let noted = || std::mem::take(&mut *log.lock().unwrap());
        let refuse = around(move |cx: Cx, next: Next| async move {
            let is_refused = cx.method() == "resources/unsubscribe" && cx.params().as_str().contains("a://1");
            // What comes after the handler decides too.
            let outcome = if inner || !is_refused { Some(next.run(cx).await) } else { None };
            match outcome {
                Some(outcome) if !is_refused => outcome,
                _ => Outcome::Failed(RpcError::invalid_request("not today")),
            }
        });
        let server = Server::new("s", "1").provider(Noting(log.clone())).layer(&refuse);
        let mut client = Client::open(&server, R4, json!({})).await;
        let watched = |uri: &str| json!({"uri": uri, "_meta": {}});
        for uri in ["a://1", "a://2"] {
            client.call("resources/subscribe", json!({"uri": uri})).await;
        }
        assert_eq!(noted(), ["+a://1", "+a://2"]);
        let refused = client.call("resources/unsubscribe", watched("a://1")).await;
        assert_eq!(refused["error"]["message"], "not today");
        assert!(noted().is_empty(), "it goes on");
        client.call("resources/unsubscribe", watched("a://2")).await;
        assert_eq!(noted(), ["ended a://2", "-a://2"]);
    }
}

/// Between the two nobody would watch it.
#[tokio::test]
async fn what_a_provider_holds_for_a_session_is_released_when_the_resource_is_watched() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let server = Server::new("s", "1").provider(Noting(log.clone()));
    let mut client = Client::open(&server, R4, json!({})).await;
    client.call("resources/subscribe", json!({"uri": "a://1", "_meta": {"held": true}})).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*log.lock().unwrap(), ["+a://1", "released"]);
}
