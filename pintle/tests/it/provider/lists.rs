//! Lists over several providers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{
        CacheHint, Cx, Entry, ListKind, Lookup, Outcome, PageRequest, Provider, ProviderInfo, ProviderPage,
        RequestError, Scope, Target, resource, tool,
    },
    types::{
        RpcError,
        schema::{CacheScope, ServerCapabilities, ToolsCapability},
    },
};
use serde_json::{Value, json};

use super::{Shelf, library};
use crate::support::eras::{ALL, Client, R4, R5, each};

/// All names of a list, page by page.
async fn pages(client: &mut Client, method: &str, member: &str, key: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut params = json!({});
    for _ in 0..50 {
        let answer = client.call(method, params).await;
        let result = &answer["result"];
        let entries = result[member].as_array().unwrap_or_else(|| panic!("{answer}"));
        pages.push(entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect());
        match result.get("nextCursor") {
            None => return pages,
            Some(cursor) => params = json!({"cursor": cursor}),
        }
    }
    panic!("the list has no end: {pages:?}")
}

async fn tools(client: &mut Client) -> Vec<Vec<String>> {
    pages(client, "tools/list", "tools", "name").await
}

#[tokio::test]
async fn lists_have_the_entries_of_all_with_every_member() {
    let server = Server::new("desk", "1")
        .tool(tool("own", || async { "own" }))
        .resource(resource("own://1", "one", || async { "1" }))
        .provider(library());
    each(&server, &ALL, json!({}), async |client| {
        let listed = client.call("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 2);
        assert_eq!(tools[0]["name"], "own");
        assert_eq!(tools[1], json!({"name": "lend", "inputSchema": {"type": "object"}, "x-kept": [1.50]}));
        for (method, member, count) in [
            ("prompts/list", "prompts", 1),
            ("resources/list", "resources", 2),
            ("resources/templates/list", "resourceTemplates", 1),
        ] {
            let listed = client.call(method, json!({})).await;
            let entries = listed["result"][member].as_array().unwrap_or_else(|| panic!("{listed}"));
            assert_eq!(entries.len(), count, "{listed}");
            assert_eq!(entries[count - 1]["x-kept"], true, "{listed}");
        }
    })
    .await;
}

#[tokio::test]
async fn pages_continue_across_the_server_and_its_providers() {
    let one = Arc::new(Shelf { size: 2, ..Shelf::of_tools("one", &["a", "b", "c"]) });
    let two = Arc::new(Shelf::of_tools("two", &["d", "e", "f"]));
    let own = || Server::new("desk", "1").tool(tool("x", || async { "x" })).tool(tool("y", || async { "y" }));
    let paged = own().page_size(2).provider(one.clone()).provider(library()).provider(two.clone());
    each(&paged, &[R4, R5], json!({}), async |client| {
        let names = tools(client).await;
        assert!(names.iter().all(|page| page.len() <= 2), "{names:?}");
        assert_eq!(names.concat(), ["x", "y", "a", "b", "c", "lend", "d", "e", "f"]);
        for cursor in ["", "nonsense", "djEyMw"] {
            let refused = client.call("tools/list", json!({"cursor": cursor})).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        let other = client.call("tools/list", json!({})).await["result"]["nextCursor"].clone();
        let refused = client.call("resources/list", json!({"cursor": other})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    })
    .await;
    // Without a page size, a page of a provider that has more ends one of the list.
    let whole = own().provider(one.clone()).provider(two.clone());
    each(&whole, &[R4, R5], json!({}), async |client| {
        assert_eq!(tools(client).await, [vec!["x", "y", "a", "b"], vec!["c", "d", "e", "f"]]);
    })
    .await;
}

#[tokio::test]
async fn one_request_reads_a_bounded_number_of_pages() {
    let names: Vec<_> = (0..100).map(|n| format!("t{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let slow = Arc::new(Shelf { size: 1, ..Shelf::of_tools("slow", &names) });
    let server = Server::new("desk", "1")
        .page_size(1000)
        .provider(slow.clone())
        .filter(|_, entry| !matches!(entry, Entry::Tool(tool) if tool.name != "t99"));
    each(&server, &[R4, R5], json!({}), async |client| {
        let first = client.call("tools/list", json!({})).await;
        assert_eq!(first["result"]["tools"], json!([]));
        assert_eq!(slow.pages(), 32);
        assert_eq!(tools(client).await.concat(), ["t99"]);
        slow.pages();
    })
    .await;
}

#[tokio::test]
async fn a_name_that_two_have_is_listed_once() {
    let one = Arc::new(Shelf::of_tools("one", &["a", "own"]));
    let two = Arc::new(Shelf::of_tools("two", &["a", "b"]));
    // `check` would refuse to serve it: these are names that met later.
    let server = Server::new("desk", "1").provider(one).tool(tool("own", || async { "own" }));
    let child = Server::new("child", "1").tool(tool("b", || async { "child" }));
    drop(two);
    let outer = Server::new("outer", "1").mount(pintle::server::Prefix::none(), child.clone());
    let mut client = Client::open(&outer, R4, json!({})).await;
    outer.add_tool(tool("a", || async { "outer" })).unwrap();
    child.add_tool(tool("a", || async { "child" })).unwrap();
    assert_eq!(tools(&mut client).await.concat(), ["a", "b"]);
    assert_eq!(client.tool("a").await, "outer", "the first is used");
    assert!(server.check().is_err());
}

#[tokio::test]
async fn the_cache_hint_of_a_list_is_the_strictest_on_every_page() {
    let hint = |ttl, scope| CacheHint::new(ttl, scope);
    let loose =
        Arc::new(Shelf { hint: hint(500, CacheScope::Public), ..Shelf::of_tools("loose", &["a", "b"]) });
    let strict =
        Arc::new(Shelf { hint: hint(9000, CacheScope::Private), ..Shelf::of_tools("strict", &["c"]) });
    let server = |strict: Option<Arc<Shelf>>| {
        let server = Server::new("desk", "1")
            .page_size(1)
            .cache_list(ListKind::Tools, hint(2000, CacheScope::Public))
            .tool(tool("own", || async { "own" }))
            .provider(loose.clone());
        match strict {
            Some(strict) => server.provider(strict),
            None => server,
        }
    };
    for (strict, scope) in [(None, "public"), (Some(strict), "private")] {
        let mut client = Client::open(&server(strict), R5, json!({})).await;
        let mut params = json!({});
        for page in 0..4 {
            let listed = client.call("tools/list", params).await;
            assert_eq!(listed["result"]["cacheScope"], scope, "page {page}: {listed}");
            assert_eq!(listed["result"]["ttlMs"], 500, "page {page}: {listed}");
            match listed["result"].get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
    }
}

#[tokio::test]
async fn capabilities_are_those_of_all() {
    let server = Server::new("desk", "1").provider(library());
    let mut client = Client::open(&server, R5, json!({})).await;
    let found = client.call("server/discover", json!({})).await;
    let can = &found["result"]["capabilities"];
    assert_eq!(can["tools"], json!({"listChanged": true}), "{found}");
    assert_eq!(can["prompts"], json!({}), "no changes of prompts are reported: {found}");
    assert_eq!(can["resources"], json!({"subscribe": true}), "{found}");
    assert_eq!(can["completions"], json!({}), "{found}");
    assert_eq!(can.get("logging"), None, "{found}");
}

#[tokio::test]
async fn changes_that_a_provider_reports_reach_the_clients() {
    let library = library();
    let server = Server::new("desk", "1").provider(library.clone());
    each(&server, &[R4, R5], json!({}), async |client| {
        client.listen(&["book://1"]).await;
        let changes = library.changes.lock().unwrap().clone().unwrap();
        for (report, received) in [
            (None, json!("notifications/tools/list_changed")),
            (Some("book://1"), json!("notifications/resources/updated")),
        ] {
            match report {
                None => changes.tools_changed(),
                Some(uri) => changes.resource_updated(uri),
            }
            let notification: Value = client.receive().await;
            assert_eq!(notification["method"], received);
        }
        assert!(changes.is_connected());
    })
    .await;
    let changes = library.changes.lock().unwrap().clone().unwrap();
    drop(server);
    for _ in 0..100 {
        // The connections of the clients end.
        tokio::task::yield_now().await;
    }
    assert!(!changes.is_connected(), "a provider does not keep its server alive");
}

/// A provider whose list of tools never ends: each page is another one, the same one, or huge.
struct Endless(EndlessKind);

#[derive(Clone, Copy, Debug)]
enum EndlessKind {
    Numbered,
    Repeated,
    Huge,
}

impl Provider for Endless {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        ProviderInfo::new("endless", capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let number: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
        let (size, next) = match self.0 {
            EndlessKind::Numbered => (1, number + 1),
            EndlessKind::Repeated => (1, 7),
            EndlessKind::Huge => (1 << 20, number + 1),
        };
        let tool = json!({"name": format!("t{number}"), "inputSchema": {}, "description": "x".repeat(size)});
        Ok(ProviderPage::of([tool])?.next(next.to_string()))
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        Lookup::None
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("it has no tools"))
    }
}

/// A list without an end is cut, and those of the providers after it are listed.
#[tokio::test]
async fn an_endless_list_of_one_provider_leaves_the_others_as_they_are() {
    for (kind, listed, sizes) in [
        (EndlessKind::Numbered, 1000, [None, Some(50)]),
        (EndlessKind::Repeated, 2, [None, Some(50)]),
        (EndlessKind::Huge, 64, [None, Some(5)]),
    ] {
        for page_size in sizes {
            let server = Server::new("desk", "1").provider(Endless(kind)).provider(library());
            let server = match page_size {
                Some(size) => server.page_size(size),
                None => server,
            };
            let mut client = Client::open(&server, R5, json!({})).await;
            let (mut names, mut params) = (Vec::new(), json!({}));
            for _ in 0..2000 {
                let result = client.call("tools/list", params).await["result"].clone();
                let tools = result["tools"].as_array().unwrap();
                names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
                match result.get("nextCursor") {
                    Some(cursor) => params = json!({"cursor": cursor}),
                    None => break,
                }
            }
            assert_eq!(names.last().map(String::as_str), Some("lend"), "{kind:?} {page_size:?}");
            assert_eq!(names.len(), listed + 1, "{kind:?} {page_size:?}");
        }
    }
}

/// A provider that counts how often its facts are read.
struct Asked(Arc<AtomicUsize>);

impl Provider for Asked {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        self.0.fetch_add(1, Ordering::SeqCst);
        let offered = json!({"tools": {}, "prompts": {}, "resources": {}});
        ProviderInfo::new("asked", serde_json::from_value(offered).unwrap())
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        Ok(ProviderPage::default())
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        Lookup::None
    }

    async fn handle(&self, _: Cx) -> Outcome {
        Outcome::Failed(RpcError::internal("it has nothing"))
    }
}

#[tokio::test]
async fn the_facts_of_a_provider_are_read_no_more_than_once_for_each_server_around_it() {
    const DEPTH: usize = 7;
    let asked = Arc::new(AtomicUsize::new(0));
    let innermost = Server::new("s", "1").provider(Asked(asked.clone()));
    let server = (0..DEPTH).fold(innermost, |inner, _| Server::new("s", "1").provider(inner));
    each(&server, &[R4, R5], json!({}), async |client| {
        asked.store(0, Ordering::SeqCst);
        let listed = client.call("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"], json!([]), "{listed}");
        let count = asked.load(Ordering::SeqCst);
        assert!(count <= DEPTH + 1, "{count}");
    })
    .await;
}
