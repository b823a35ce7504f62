//! Names of a backend that collide, disappear, or are looked for in lists without an end.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Server,
    server::{
        Cx, ListKind, Lookup, Mount, Outcome, PageRequest, Partial, Provider, ProviderInfo, ProviderPage,
        ReportPart, RequestError, Scope, Target, prompt, tool,
    },
    types::{
        JsonObject, RawObject,
        schema::{
            CallToolResult, CompletionReference, PromptReference, ServerCapabilities, Tool, ToolsCapability,
        },
    },
};
use serde_json::json;
use tokio::time::Instant;

use super::*;

/// Two names that become the same one.
const COLLIDING: [&str; 2] = ["a..././.././/...//.", "a...//.//./...////."];

/// The pages of a list.
#[derive(Clone, Copy)]
enum ListLength {
    One,
    Endless,
    /// The list is never answered.
    Never,
}

/// A backend whose lists are counted. Its tools return the names that they are called by.
struct CountedLists {
    tools: Mutex<Vec<&'static str>>,
    length: ListLength,
    lists: AtomicUsize,
}

impl CountedLists {
    fn new(length: ListLength, tools: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { tools: Mutex::new(tools.to_vec()), length, lists: AtomicUsize::new(0) })
    }

    fn lists(&self) -> usize {
        self.lists.load(Ordering::SeqCst)
    }
}

fn tool_of(name: &str) -> Tool {
    Tool::new(name, JsonObject::new())
}

impl Provider for CountedLists {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        ProviderInfo::new("counted", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        let number = self.lists.fetch_add(1, Ordering::SeqCst);
        let tools: Vec<_> = self.tools.lock().unwrap().iter().map(|name| tool_of(name)).collect();
        let page = ProviderPage::of(tools)?;
        match self.length {
            ListLength::One => Ok(page),
            ListLength::Endless => Ok(page.next(number.to_string())),
            ListLength::Never => pending().await,
        }
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let tools = self.tools.lock().unwrap();
        tools.iter().find(|name| **name == target.name()).map(|name| tool_of(name)).into()
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        let name = cx.target().map(|target| target.name().to_owned()).unwrap_or_default();
        Outcome::Complete(CallToolResult::raw_text(&name).into())
    }
}

/// A client of a gateway with this backend, and the names that were reported as changed.
async fn gateway(backend: impl Provider) -> (Connection, Arc<Mutex<Vec<String>>>) {
    let reported: Arc<Mutex<Vec<String>>> = Arc::default();
    let report = reported.clone();
    let names = HostNames::new(Mount::new("git", backend), move |name, _| {
        report.lock().unwrap().push(name.to_owned());
    });
    let server = Server::new("gateway", "0").provider(names);
    let client = Client::new("client", "0").connect(server.in_process().unwrap()).await.unwrap();
    (client, reported)
}

async fn refused(client: &Connection, name: &str) {
    let error = client.call_tool(name, ()).await.unwrap_err().to_string();
    assert!(error.contains("no such tool"), "{name}: {error}");
}

#[tokio::test]
async fn of_two_names_that_become_one_the_first_is_offered_and_reported_once() {
    let [first, second] = COLLIDING.map(|name| format!("git_{name}"));
    let offered = accepted(&first).into_owned();
    assert_eq!(offered, accepted(&second));
    let (client, reported) = gateway(CountedLists::new(ListLength::One, &COLLIDING)).await;
    for _ in 0..2 {
        let tools = client.tools().await.unwrap();
        let titles: Vec<_> = tools.iter().map(|tool| (&*tool.name, tool.title.as_deref())).collect();
        assert_eq!(titles, [(&*offered, Some(&*first))]);
        assert_eq!(client.call_tool(&*offered, ()).await.unwrap().text(), COLLIDING[0]);
    }
    assert_eq!(*reported.lock().unwrap(), [first]);
}

#[tokio::test]
async fn a_changed_name_of_a_tool_that_is_gone_is_unknown() {
    let backend = CountedLists::new(ListLength::One, &["fs.read"]);
    let (client, _) = gateway(backend.clone()).await;
    assert_eq!(client.call_tool("git_fs_read_5f4847e4", ()).await.unwrap().text(), "fs.read");
    backend.tools.lock().unwrap().clear();
    refused(&client, "git_fs_read_5f4847e4").await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_nobody_has_is_looked_for_once_a_second_and_not_for_ever() {
    let backend = CountedLists::new(ListLength::One, &["plain"]);
    let (client, _) = gateway(backend.clone()).await;
    for _ in 0..5 {
        refused(&client, "git_none_00000000").await;
    }
    assert_eq!(backend.lists(), 1);
    tokio::time::advance(LOOK_UP_INTERVAL).await;
    refused(&client, "git_none_00000000").await;
    assert_eq!(backend.lists(), 2);
    // Names that are never changed ones need no list.
    tokio::time::advance(LOOK_UP_INTERVAL).await;
    refused(&client, "git_a.b").await;
    refused(&client, "git_none").await;
    assert_eq!(backend.lists(), 2);

    let backend = CountedLists::new(ListLength::Endless, &["plain"]);
    let (client, _) = gateway(backend.clone()).await;
    refused(&client, "git_none_00000000").await;
    assert_eq!(backend.lists(), MAX_PAGES);

    let (client, _) = gateway(CountedLists::new(ListLength::Never, &["plain"])).await;
    let start = Instant::now();
    refused(&client, "git_none_00000000").await;
    assert!(start.elapsed() < LIST_TIMEOUT + Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn what_is_known_is_bounded_in_number() {
    let mut known = ShortenedEntries::default();
    for number in 0..=MAX_KNOWN {
        let shortened = ShortenedEntry { inner: number.to_string(), entry: RawObject::empty() };
        known.insert((ListKind::Tools, number.to_string()), shortened);
    }
    assert_eq!(known.entries.len(), 1, "the others are forgotten");
}

#[tokio::test]
async fn a_prompt_with_another_name_is_completed_by_it() {
    let read = prompt("fs.read", || async { "read" }).argument("branch", "The branch.");
    let read = read.complete("branch", |_: Partial| async { vec!["main"] });
    let (client, _) = gateway(Server::new("files", "0").prompt(read)).await;
    let offered = client.prompts().await.unwrap()[0].name.clone();
    assert_eq!(offered, "git_fs_read_5f4847e4");
    let reference = CompletionReference::Prompt(PromptReference::new(offered));
    assert_eq!(client.complete(reference, "branch", "m", []).await.unwrap().values, ["main"]);
}

#[tokio::test]
async fn a_ref_of_a_call_names_nothing() {
    // The second has the name that the first is offered by.
    let backend = CountedLists::new(ListLength::One, &["fs.read", "fs_read_5f4847e4"]);
    let (client, _) = gateway(backend).await;
    for reference in [json!({}), json!({"name": "fs_read_5f4847e4"}), json!("fs_read_5f4847e4")] {
        let params = json!({"name": "git_fs_read_5f4847e4", "ref": reference});
        let called: CallToolResult = client.request("tools/call", params).await.unwrap();
        assert_eq!(called.text(), "fs.read", "{reference}");
    }
}

#[test]
fn names_that_are_known_are_those_that_are_offered() {
    let files = Server::new("files", "0").tool(tool("fs.read", || async { "" }));
    let names = HostNames::new(Mount::new("git", files), |_, _| {});
    assert_eq!(names.report(ReportPart::Names(ListKind::Tools)), ["git_fs_read_5f4847e4"]);
}
