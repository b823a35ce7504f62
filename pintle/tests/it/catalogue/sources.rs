//! Resources that come and go by themselves.

use std::path::PathBuf;

use pintle::{
    Server,
    directory::Directory,
    server::{Cx, Entry, RequestError, ResourceSource, resource, template},
    types::schema::{ReadResourceResult, Resource, ResourceContents},
};
use serde_json::{Value, json};

use crate::support::eras::{ALL, Client, R1, R2, R3, R4, R5, each};

struct Squares;

impl ResourceSource for Squares {
    async fn list(&self, _: Cx) -> Result<Vec<Resource>, RequestError> {
        tokio::task::yield_now().await;
        Ok((0..5).map(|n| Resource::new(format!("square://{n}"), n.to_string())).collect())
    }

    fn find(&self, uri: &str) -> Option<Resource> {
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
        for uri in ["docs://../a.md", "docs://sub/..%2fa.md", "docs://.hidden", "docs://none", "docs://sub"] {
            assert_eq!(read(client, uri).await, not_found, "{uri}");
        }
        for uri in ["docs://secret.txt", "docs://%73ecret.txt", "DOCS://secret.txt"] {
            assert_eq!(read(client, uri).await, not_found, "{uri} is hidden");
        }
        assert_eq!(read(client, "docs://large.bin").await, -32603);
        client.listen(&["docs://sub"]).await;
        std::fs::write(scratch.0.join("sub/b c.txt"), client.revision).unwrap();
        server.resource_updated("docs://sub/b%20c.txt");
        assert_eq!(client.hear().await["params"]["uri"], "docs://sub/b%20c.txt");
        assert_eq!(read(client, "docs://sub/b%20c.txt").await["text"], client.revision);
        server.resources_changed();
        assert_eq!(client.hear().await["method"], "notifications/resources/list_changed");
        std::fs::write(scratch.0.join("sub/b c.txt"), "b").unwrap();
    })
    .await;
}
