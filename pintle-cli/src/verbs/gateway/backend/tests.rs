use std::{future::ready, io, sync::atomic::AtomicUsize};

use pintle::{
    Client, Server,
    server::{around, tool},
    types::{RawObject, schema::Tool},
};
use pintle_relay::Relay;

use super::*;
use crate::{
    output::Output,
    verbs::gateway::{
        target::TargetEntry,
        whole_list::{MAX_ENTRIES, MAX_PAGES},
    },
};

/// The offer of a target with this prefix.
pub(super) fn offer(prefix: &str) -> TargetOffer {
    let entry: TargetEntry = toml::from_str(&format!("prefix = \"{prefix}\"")).unwrap();
    TargetOffer::of_target("unused", &entry, &Output::kept().0)
}

impl Backend {
    /// A backend that is not connected, with its name as its prefix.
    pub(in crate::verbs::gateway) fn unconnected(name: &str) -> Arc<Self> {
        Arc::new(Self::new(name, offer(name)))
    }
}

/// A server whose list of tools never ends, or never comes.
struct Hostile {
    answers: bool,
    /// The length of each description.
    description: usize,
}

impl Provider for Hostile {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        ProviderInfo::new("hostile", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        if !self.answers {
            return std::future::pending().await;
        }
        let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
        let tools = (first..first + 100).map(|number| {
            let mut tool = Tool::new(format!("t{number}"), JsonObject::new());
            tool.description = Some("x".repeat(self.description));
            tool
        });
        Ok(ProviderPage::of(tools)?.next((first + 100).to_string()))
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        Lookup::None
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("it is hostile"))
    }
}

/// A connection to a server.
pub(super) async fn relay(server: Server) -> BackendProvider {
    let open = move || ready(server.in_process().map_err(io::Error::other));
    BackendProvider::Relay(Relay::connect(Client::new("gateway", "0"), open).await.unwrap())
}

pub(super) async fn backend(name: &str, server: Server) -> Arc<Backend> {
    let backend = Arc::new(Backend::new(name, offer(name)));
    let target = OpenTarget::new(relay(server).await, backend.offering());
    backend.connect(0, Arc::new(target));
    backend
}

/// The tools of a gateway with a backend and an honest one after it.
async fn listed(hostile: Server) -> (usize, bool, bool) {
    let hostile = backend("hostile", hostile).await;
    let honest = Server::new("honest", "0").tool(tool("work", || async { "worked" }));
    let gateway = Server::new("gateway", "0")
        .provider(hostile.clone())
        .provider(backend("honest", honest).await)
        .provider(Arc::new(Backend::new("down", offer("down"))));
    let client = Client::new("client", "0").connect(gateway.in_process().unwrap()).await.unwrap();
    let tools = client.tools().await.unwrap();
    let worked = client.call_tool("honest_work", ()).await.unwrap().text() == "worked";
    let has_work = tools.iter().any(|tool| tool.name == "honest_work");
    (tools.len() - usize::from(has_work), has_work && worked, hostile.health.traffic().is_cut)
}

#[tokio::test(start_paused = true)]
async fn a_hostile_backend_leaves_the_lists_of_others_alone() {
    let hostile = |answers| Server::new("hostile", "0").provider(Hostile { answers, description: 0 });
    assert_eq!(listed(hostile(true)).await, (MAX_ENTRIES, true, true), "an endless list is cut");
    assert_eq!(listed(hostile(false)).await, (0, true, false), "a list that never comes is left out");
    let many = (0..6_000).map(|number| tool(format!("t{number}"), || async { "" }));
    let many = many.fold(Server::new("many", "0"), |server, tool| server.tool(tool));
    assert_eq!(listed(many).await, (MAX_ENTRIES, true, true), "a huge list is cut");
    let long = Server::new("hostile", "0").provider(Hostile { answers: true, description: 20_000 });
    let (count, others, is_cut) = listed(long).await;
    assert!((300..420).contains(&count) && others && is_cut, "8 MiB are offered: {count} tools");
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let empty = Server::new("empty", "0").tool(tool("never", || async { "" }));
    let empty = empty.layer(&around(move |cx, next| {
        let number = counted.fetch_add(usize::from(cx.method() == "tools/list"), Ordering::SeqCst);
        async move {
            if cx.method() != "tools/list" {
                return next.run(cx).await;
            }
            let page = format!(r#"{{"tools":[],"nextCursor":"{number}"}}"#);
            Outcome::Complete(page.parse::<RawObject>().unwrap().into())
        }
    }));
    assert_eq!(listed(empty).await, (0, true, true), "empty pages are not read for ever");
    assert_eq!(lists.load(Ordering::SeqCst), MAX_PAGES);
    let imitator = Server::new("imitator", "0").tool(tool("work", || async { "stolen" }));
    assert_eq!(listed(imitator).await, (1, true, false), "a name of another backend has another prefix");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_backend_that_is_down_says_for_how_long_and_why() {
    let (prefixed, bare) = (Backend::new("notes", offer("n")), Backend::new("bare", offer("")));
    prefixed.fail(0, "the port is closed".to_owned());
    bare.fail(0, "it is asleep".to_owned());
    tokio::time::advance(Duration::from_secs(90)).await;
    for (backend, name, expected) in [
        (prefixed, "n_write", "`notes` has been down for 90 s, call again later: the port is closed"),
        (bare, "anything", "`bare` has been down for 90 s, call again later: it is asleep"),
    ] {
        let gateway = Server::new("gateway", "0").provider(backend);
        let client = Client::new("client", "0").connect(gateway.in_process().unwrap()).await.unwrap();
        let error = client.call_tool(name, ()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let other = Server::new("gateway", "0").provider(Backend::new("notes", offer("n")));
    let client = Client::new("client", "0").connect(other.in_process().unwrap()).await.unwrap();
    let error = client.call_tool("notes_write", ()).await.unwrap_err().to_string();
    assert!(error.contains("no such tool"), "it is not of this backend: {error}");
}
