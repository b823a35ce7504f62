//! Resources that come and go by themselves.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    Server,
    directory::Directory,
    server::{Cx, Entry, PageRequest, RequestError, ResourcePage, ResourceSource, resource, template},
    types::schema::{ReadResourceResult, Resource, ResourceContents},
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R1, R2, R3, R4, R5, each};

struct Squares;

impl ResourceSource for Squares {
    async fn list(&self, _: Cx, _: PageRequest) -> Result<ResourcePage, RequestError> {
        tokio::task::yield_now().await;
        Ok((0..5).map(|n| Resource::new(format!("square://{n}"), n.to_string())).collect())
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        let number: u8 = uri.strip_prefix("square://")?.parse().ok()?;
        Some(Resource::new(format!("square://{number}"), number.to_string()))
    }

    async fn read(&self, _: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
        let number: u32 = uri.trim_start_matches("square://").parse()?;
        if number > 4 {
            return Err(RequestError::not_found());
        }
        Ok(ReadResourceResult::new(vec![ResourceContents::text(uri, (number * number).to_string())]))
    }
}

/// A table of 1,000 rows that counts what is read of it. Rows are found by a lookup; every tenth one is secret.
#[derive(Clone, Default)]
struct Table {
    rows: Arc<AtomicUsize>,
    lookups: Arc<AtomicUsize>,
}

impl Table {
    const LENGTH: usize = 1000;

    fn row(number: usize) -> Resource {
        let name = if number.is_multiple_of(10) { "secret" } else { "row" };
        Resource::new(format!("row://{number}"), name)
    }
}

impl ResourceSource for Table {
    async fn list(&self, _: Cx, page: PageRequest) -> Result<ResourcePage, RequestError> {
        let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
        let last = first.saturating_add(page.limit.min(100)).min(Self::LENGTH);
        self.rows.fetch_add(last - first, Ordering::Relaxed);
        let page: ResourcePage = (first..last).map(Self::row).collect();
        Ok(if last < Self::LENGTH { page.next(last.to_string()) } else { page })
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        uri.starts_with("row://").then(|| Resource::new(uri, "unknown"))
    }

    async fn find(&self, _: Cx, uri: &str) -> Result<Option<Resource>, RequestError> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        let number: usize = uri.trim_start_matches("row://").parse()?;
        Ok((number < Self::LENGTH).then(|| Self::row(number)))
    }

    async fn read(&self, _: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text(uri, "cells")]))
    }
}

/// A directory of its own for each test, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pintle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("sub")).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn pages(client: &mut Client) -> Vec<Vec<String>> {
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.call("resources/list", params).await;
        let uris = page["result"]["resources"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
        pages.push(uris.map(|resource| resource["uri"].as_str().unwrap().to_owned()).collect());
        match page["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return pages,
        }
    }
}

async fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.call("resources/read", json!({"uri": uri})).await;
    if answer.get("error").is_some() {
        answer["error"]["code"].clone()
    } else {
        answer["result"]["contents"][0].clone()
    }
}

#[tokio::test]
async fn a_source_is_listed_in_pages_and_read() {
    let server = Server::new("s", "0")
        .page_size(3)
        .resource(resource("note://motd", "motd", || async { "Be kind." }))
        .template(template("square://{+any}", "any", || async { "template" }))
        .source(Squares)
        .filter(|_, entry| !matches!(entry, Entry::Resource(resource) if resource.name == "3"));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(
            pages(client).await,
            [vec!["note://motd", "square://0", "square://1"], vec!["square://2", "square://4"]]
        );
        assert_eq!(read(client, "note://motd").await["text"], "Be kind.");
        assert_eq!(read(client, "square://4").await["text"], "16");
        let not_found = match client.revision {
            R1 | R2 | R3 | R4 => -32002,
            _ => -32602,
        };
        assert_eq!(read(client, "square://3").await, not_found, "hidden, and no template leads around that");
        assert_eq!(read(client, "square://03").await, not_found, "however it is spelled");
        assert_eq!(read(client, "square://9").await, not_found);
        assert_eq!(read(client, "square://x").await["text"], "template");
        let foreign = client.call("resources/list", json!({"cursor": "cwAA"})).await;
        assert_eq!(foreign["error"]["code"], -32602);
    })
    .await;
}

#[tokio::test]
async fn the_files_of_a_directory_and_nothing_else() {
    let scratch = Scratch::new("sources");
    for (name, text) in [("a.md", "# A"), ("sub/b c.txt", "b"), (".hidden", "h"), ("secret.txt", "s")] {
        std::fs::write(scratch.0.join(name), text).unwrap();
    }
    std::fs::write(scratch.0.join("large.bin"), vec![0; 2000]).unwrap();
    let directory = Directory::new(&scratch.0).unwrap().prefix("docs://").unwrap().max_file_size(1000);
    let server = Server::new("s", "0").directory(directory).filter(
        |_, entry| !matches!(entry, Entry::Resource(resource) if resource.uri == "docs://secret.txt"),
    );
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        assert_eq!(pages(client).await, [["docs://a.md", "docs://large.bin", "docs://sub/b%20c.txt"]]);
        let page = read(client, "docs://a.md").await;
        assert_eq!((&page["text"], &page["mimeType"]), (&json!("# A"), &json!("text/markdown")));
        assert_eq!(read(client, "docs://sub/b%20c.txt").await["text"], "b");
        let not_found = if client.revision == R5 { -32602 } else { -32002 };
        // Where a filter decides, a spelling that readers differ about is not looked up.
        assert_eq!(read(client, "docs://../a.md").await, -32602);
        for uri in ["docs://sub/..%2fa.md", "docs://.hidden", "docs://none", "docs://sub"] {
            assert_eq!(read(client, uri).await, not_found, "{uri}");
        }
        for uri in ["docs://secret.txt", "docs://%73ecret.txt", "DOCS://secret.txt"] {
            assert_eq!(read(client, uri).await, not_found, "{uri} is hidden");
        }
        assert_eq!(read(client, "docs://large.bin").await, -32603);
        client.listen(&["docs://sub"]).await;
        std::fs::write(scratch.0.join("sub/b c.txt"), client.revision).unwrap();
        server.resource_updated("docs://sub/b%20c.txt");
        assert_eq!(client.receive().await["params"]["uri"], "docs://sub/b%20c.txt");
        assert_eq!(read(client, "docs://sub/b%20c.txt").await["text"], client.revision);
        server.resources_changed();
        assert_eq!(client.receive().await["method"], "notifications/resources/list_changed");
        std::fs::write(scratch.0.join("sub/b c.txt"), "b").unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_source_with_cursors_produces_each_row_once() {
    for (size, hides, lengths) in
        [(Some(10), false, vec![10; 100]), (Some(10), true, vec![10; 90]), (None, false, vec![100; 10])]
    {
        let table = Table::default();
        let mut server = Server::new("s", "0").source(table.clone());
        if let Some(size) = size {
            server = server.page_size(size);
        }
        if hides {
            server = server
                .filter(|_, entry| !matches!(entry, Entry::Resource(resource) if resource.name == "secret"));
        }
        each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
            table.rows.store(0, Ordering::Relaxed);
            let pages = pages(client).await;
            assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), lengths, "{size:?} {hides}");
            let expected = (0..Table::LENGTH).filter(|number| !hides || number % 10 != 0);
            assert!(pages.concat().into_iter().eq(expected.map(|number| format!("row://{number}"))));
            assert_eq!(table.rows.load(Ordering::Relaxed), Table::LENGTH);
        })
        .await;
    }
}

#[tokio::test]
async fn rows_that_all_are_hidden_cost_a_bounded_number_of_pages() {
    let table = Table::default();
    let server =
        Server::new("s", "0").page_size(10).source(table.clone()).source(Squares).filter(
            |_, entry| !matches!(entry, Entry::Resource(resource) if resource.uri.starts_with("row")),
        );
    each(&server, &[R5], json!({}), async |client: &mut Client| {
        let first = client.call("resources/list", json!({})).await;
        assert_eq!(first["result"]["resources"], json!([]));
        assert_eq!(table.rows.load(Ordering::Relaxed), 320);
        assert_eq!(pages(client).await.concat().len(), 5, "the next source is reached");
    })
    .await;
}

#[tokio::test]
async fn a_lookup_decides_what_can_be_read() {
    let table = Table::default();
    let server = Server::new("s", "0")
        .source(table.clone())
        .filter(|_, entry| !matches!(entry, Entry::Resource(resource) if resource.name == "secret"));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        table.lookups.store(0, Ordering::Relaxed);
        let not_found = if client.revision == R5 { -32602 } else { -32002 };
        assert_eq!(read(client, "row://7").await["text"], "cells");
        assert_eq!(read(client, "row://1000").await, not_found);
        assert_eq!(read(client, "row://10").await, not_found, "hidden by what the lookup found");
        assert_eq!(read(client, "row://x").await, -32603, "a lookup may fail");
        assert_eq!(table.lookups.load(Ordering::Relaxed), 4);
    })
    .await;
}
