//! Which of several entries a URI leads to: one that lists it before a template, whoever has it, and of templates the most literal.

use std::sync::{Arc, Mutex};

use pintle::{
    Server,
    server::{Decision, GateRequest, Mount, Partial, Prefix, TemplateRoute, resource, template},
};
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, each, not_found};

fn note(uri: &'static str, text: &'static str) -> TemplateRoute {
    template(uri, text, move || async move { text })
        .complete("id", move |_: Partial| async move { vec![text.to_owned()] })
}

/// A server whose own templates also match what the one in it lists.
fn desk() -> Server {
    let shelf = Server::new("shelf", "1")
        .resource(resource("note://1", "one", || async { "listed" }))
        .template(note("note://box/{id}", "box"))
        .template(note("note://{+id}", "shelf"));
    Server::new("desk", "1")
        .template(note("note://{id}", "desk"))
        .template(note("note://box/lid/{id}", "lid"))
        .mount(Prefix::none(), shelf)
}

/// The URIs, and what answers for each.
const LEADS: [(&str, &str); 5] = [
    ("note://1", "listed"),
    ("note://box/2", "box"),
    ("note://box/lid/2", "lid"),
    ("note://2", "desk"),
    ("note://a/b", "shelf"),
];

async fn read(client: &mut Client, uri: &str) -> Value {
    let read = client.call("resources/read", json!({ "uri": uri })).await;
    read["result"]["contents"][0]["text"].clone()
}

#[tokio::test]
async fn a_listed_resource_comes_before_templates_of_anybody() {
    // It is the same for what is mounted two deep.
    for server in [desk(), Server::new("house", "1").mount(Prefix::none(), desk())] {
        each(&server, &[R4, R5], json!({}), async |client| {
            for (uri, text) in LEADS {
                assert_eq!(read(client, uri).await, text, "{uri}");
            }
            for (uri, text) in &LEADS[1..] {
                let params = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "id", "value": ""}});
                let completed = client.call("completion/complete", params).await;
                assert_eq!(completed["result"]["completion"]["values"], json!([text]), "{uri}: {completed}");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn gates_judge_the_entry_that_a_uri_leads_to() {
    let judged = Arc::new(Mutex::new(Vec::new()));
    let log = judged.clone();
    let server = desk().gate(move |request: &GateRequest<'_>| {
        let entry = (request.entry.name().to_owned(), request.backend.map(str::to_owned));
        log.lock().unwrap().push(entry);
        Decision::Allow
    });
    for revision in [R4, R5] {
        let mut client = Client::open(&server, revision, json!({})).await;
        judged.lock().unwrap().clear();
        assert_eq!(read(&mut client, "note://1").await, "listed");
        client.listen(&["note://1"]).await;
        let wanted = ("note://1".to_owned(), Some("shelf".to_owned()));
        let judged = std::mem::take(&mut *judged.lock().unwrap());
        assert!(judged.len() > 1 && judged.iter().all(|entry| *entry == wanted), "{revision}: {judged:?}");
    }
}

#[tokio::test]
async fn what_is_hidden_is_in_its_place_too() {
    let shelf = Server::new("shelf", "1")
        .resource(resource("note://1", "one", || async { "listed" }))
        .template(note("note://{+id}", "shelf"))
        .gate(|_: &GateRequest<'_>| Decision::Hide);
    let behind = Server::new("behind", "1").template(note("note://box/{id}", "box"));
    let server = Server::new("desk", "1")
        .template(note("note://{id}", "desk"))
        .provider(Mount::new(Prefix::none(), shelf))
        .mount(Prefix::none(), behind);
    each(&server, &[R4, R5], json!({}), async |client| {
        // A template that is less literal hides nothing, and a listed resource is there for nobody else.
        assert_eq!(read(client, "note://2").await, "desk");
        assert_eq!(read(client, "note://box/2").await, "box");
        for uri in ["note://1", "note://a/b"] {
            let hidden = client.call("resources/read", json!({ "uri": uri })).await;
            assert_eq!(hidden["error"]["code"], not_found(client), "{uri}: {hidden}");
        }
    })
    .await;
}
