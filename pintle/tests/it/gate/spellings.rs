//! One resource, whatever its URI is spelled like: what is hidden, counted and sent on.

use std::sync::{Arc, Mutex};

use pintle::{
    Server,
    directory::Directory,
    proto::Limits,
    server::{Cx, ListKind, Prefix, RuleSet, Rules, Transform, resource, template, tool},
    types::schema::ContentBlock,
};
use pintle_relay::Relay;
use serde_json::{Value, json};

use crate::support::eras::{Client, R4, R5, not_found};

/// The spellings of one URI: as it was listed, as servers read it, and as those do that decode twice.
const SECRET: [&str; 6] = [
    "note://secret/plan",
    "note://%73ecret/plan",
    "NOTE://secret/plan",
    "note://SECRET/pl%61n",
    "note://%2573ecret/plan",
    "note://public%2F..%2Fsecret/plan",
];
/// The error of a spelling that means several things.
const UNCLEAR: &str = "this spelling cannot be judged: send it as it was listed";

/// Notes of any folder, a tool with links to some, and the URIs that were read.
fn notes() -> (Server, Arc<Mutex<Vec<String>>>) {
    let read: Arc<Mutex<Vec<String>>> = Arc::default();
    let (noted, listed) = (read.clone(), read.clone());
    let note = move |cx: Cx| {
        noted.lock().unwrap().push(uri_of(&cx));
        async { "text" }
    };
    let odd = move |cx: Cx| {
        listed.lock().unwrap().push(uri_of(&cx));
        async { "odd" }
    };
    let link = |uri: &str| -> ContentBlock {
        serde_json::from_value(json!({"type": "resource_link", "uri": uri, "name": "linked"})).unwrap()
    };
    let links = move || {
        let uris =
            ["note://public/1", "note://public/1#part"].into_iter().chain(SECRET).chain(["note://a/../b"]);
        std::future::ready(uris.map(link).collect::<Vec<_>>())
    };
    let server = Server::new("notes", "0")
        .template(
            template("note://{folder}/{+title}", "note", note).complete("title", || async { vec!["plan"] }),
        )
        .resource(resource("NOTE://Odd/../%7Eann", "odd", odd))
        .tool(tool("link", links));
    (server, read)
}

fn uri_of(cx: &Cx) -> String {
    cx.params().decode_member("uri").unwrap().unwrap()
}

fn hide(resources: &[&str]) -> Rules {
    rules(json!([{"resources": resources, "decision": "hide"}]))
}

fn rules(rules: Value) -> Rules {
    let set: RuleSet = serde_json::from_value(json!({"rules": rules, "default": "allow"})).unwrap();
    Rules::new(set).unwrap()
}

fn outer() -> Server {
    Server::new("outer", "0")
}

async fn relay(behind: Server, revision: &str) -> Relay {
    let client = pintle::Client::new("relay", "0").revisions([revision.parse().unwrap()]);
    let connect = move || {
        let transport = behind.in_process().map_err(std::io::Error::other);
        async { transport }
    };
    Relay::connect(client, connect).await.unwrap()
}

async fn read(client: &mut Client, uri: &str) -> Value {
    client.call("resources/read", json!({"uri": uri})).await
}

/// Servers that hide `note://secret/*`, each in another place.
async fn hiding() -> Vec<(&'static str, Server)> {
    let secret = || hide(&["note://secret/*"]);
    vec![
        ("own", notes().0.gate(secret())),
        ("outer", outer().mount("n", notes().0).gate(secret())),
        ("inner", outer().mount("n", notes().0.gate(hide(&["NOTE://%73Ecret/*"])))),
        (
            "transformed",
            outer().provider(Transform::new(notes().0).hide(ListKind::Resources, "note://Secret/*")),
        ),
        ("only", outer().provider(Transform::new(notes().0).only(ListKind::Resources, ["note://public/*"]))),
        (
            "prefixed",
            outer().mount(
                Prefix::new("n").uris(),
                Transform::new(notes().0).hide(ListKind::Resources, "note://secret/*"),
            ),
        ),
        ("relay to a session", outer().provider(relay(notes().0, R4).await).gate(secret())),
        ("relay", outer().provider(relay(notes().0, R5).await).gate(secret())),
    ]
}

#[tokio::test(start_paused = true)]
async fn no_spelling_of_a_hidden_resource_is_read_watched_or_completed() {
    for (place, server) in hiding().await {
        for revision in [R4, R5] {
            let mut client = Client::open(&server, revision, json!({})).await;
            let prefixed = |uri: &str| match place {
                "prefixed" => uri.replacen("://", "://n/", 1),
                _ => uri.to_owned(),
            };
            let fine = read(&mut client, &prefixed("note://public/plan")).await;
            assert_eq!(fine["result"]["contents"][0]["text"], "text", "{place} {fine}");
            for uri in SECRET.map(prefixed) {
                let answer = read(&mut client, &uri).await;
                assert!(answer["error"].is_object(), "{place} {uri} {answer}");
                let argument = json!({"name": "title", "value": ""});
                let completed = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument});
                let completed = client.call("completion/complete", completed).await;
                assert!(completed["error"].is_object(), "{place} {uri} {completed}");
                if revision == R4 {
                    let watched = client.call("resources/subscribe", json!({"uri": uri})).await;
                    // Where nothing but a transform hides it, it may be watched, and nothing is heard.
                    let is_gated = !matches!(place, "transformed" | "only" | "prefixed");
                    assert!(watched["error"].is_object() || !is_gated, "{place} {uri} {watched}");
                }
            }
            let unclear = read(&mut client, &prefixed("note://public/../secret/plan")).await;
            assert_eq!(unclear["error"]["code"], -32602, "{place} {unclear}");
            assert_eq!(unclear["error"]["message"], UNCLEAR, "{place}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_granted_without_any_spelling_of_a_hidden_resource() {
    for (place, server) in hiding().await {
        if matches!(place, "transformed" | "only" | "prefixed") {
            continue;
        }
        let mut client = Client::open(&server, R5, json!({})).await;
        let uris: Vec<&str> = ["note://public/1"].into_iter().chain(SECRET).collect();
        client.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}})).await;
        let granted = client.receive().await;
        let granted = &granted["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*granted, json!(["note://public/1"]), "{place}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_as_many_resources_as_it_may_name_is_judged_and_one_of_more_is_refused() {
    let mut limits = Limits::default();
    limits.watched = 2;
    let note = |uri: &'static str| resource(uri, "note", || async { "" });
    let server = Server::new("s", "0")
        .resource(note("note://a/~b"))
        .resource(note("note://~c"))
        .resource(note("note://secret"))
        .gate(hide(&["note://secret"]))
        .limits(limits);
    let filter = |uris: &[&str]| json!({"notifications": {"resourceSubscriptions": uris}});
    let mut client = Client::open(&server, R5, json!({})).await;
    for (uris, expected) in [
        (&["NOTE://a/%7eb"][..], &["note://a/~b"][..]),
        (&["NOTE://a/%7eb", "note://secret"], &["note://a/~b"]),
        (&["NOTE://a/%7eb", "note://%7ec"], &["note://a/~b", "note://~c"]),
    ] {
        client.send("subscriptions/listen", filter(uris)).await;
        let granted = client.receive().await["params"]["notifications"]["resourceSubscriptions"].clone();
        assert_eq!(granted, json!(expected));
    }
    let uris = ["NOTE://a/%7eb", "note://secret", "note://none"];
    let refused = client.call("subscriptions/listen", filter(&uris)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn links_to_hidden_resources_are_removed_in_every_spelling() {
    for (place, server) in hiding().await {
        let name = match place {
            "outer" | "inner" | "prefixed" => "n_link",
            _ => "link",
        };
        if matches!(place, "transformed" | "only" | "prefixed") {
            continue;
        }
        let mut client = Client::open(&server, R5, json!({})).await;
        client.call("resources/templates/list", json!({})).await;
        let answer = client.call("tools/call", json!({"name": name})).await;
        let links: Vec<_> =
            answer["result"]["content"].as_array().unwrap().iter().map(|it| &it["uri"]).collect();
        assert_eq!(links, ["note://public/1", "note://public/1#part"], "{place}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_on_is_the_listed_spelling_or_the_clients_own() {
    for revision in [R4, R5] {
        let ((own, own_read), (behind, read_behind)) = (notes(), notes());
        let relayed = outer().provider(relay(behind, revision).await).gate(hide(&["note://secret/*"]));
        for (server, noted) in [(own, own_read), (relayed, read_behind)] {
            let mut client = Client::open(&server, R5, json!({})).await;
            client.call("resources/list", json!({})).await;
            for (uri, sent) in [
                ("NOTE://Owner/%7eb", "note://Owner/~b"),
                ("note://Owner/caf%c3%a9", "note://Owner/caf%c3%a9"),
                ("note://Owner/café", "note://Owner/café"),
                // Byte for byte a listed one.
                ("NOTE://Odd/../%7Eann", "NOTE://Odd/../%7Eann"),
            ] {
                let answer = read(&mut client, uri).await;
                assert!(answer["result"].is_object(), "{uri} {answer}");
                assert_eq!(std::mem::take(&mut *noted.lock().unwrap()), [sent], "{uri}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_listed_resource_is_found_by_any_spelling_and_read_by_its_own() {
    let read_uris: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = read_uris.clone();
    let listed = move |cx: Cx| {
        noted.lock().unwrap().push(uri_of(&cx));
        async { "text" }
    };
    let server = Server::new("s", "0").resource(resource("Repo://Owner/%7Ea", "a", listed));
    for server in
        [server.clone(), outer().mount("s", server.clone()), outer().provider(relay(server, R5).await)]
    {
        let mut client = Client::open(&server, R4, json!({})).await;
        client.call("resources/list", json!({})).await;
        for uri in ["Repo://Owner/%7Ea", "repo://Owner/~a", "REPO://Owner/~%61"] {
            assert!(read(&mut client, uri).await["result"].is_object(), "{uri}");
            let watched = client.call("resources/subscribe", json!({"uri": uri})).await;
            assert!(watched["result"].is_object(), "{watched}");
            let unwatched = client.call("resources/unsubscribe", json!({"uri": uri})).await;
            assert!(unwatched["result"].is_object(), "{unwatched}");
        }
        let other = read(&mut client, "repo://owner/~a").await;
        assert_eq!(other["error"]["code"], not_found(&client), "an authority keeps its case");
        assert_eq!(std::mem::take(&mut *read_uris.lock().unwrap()), ["Repo://Owner/%7Ea"; 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_whatever_spelling_was_subscribed_to() {
    let server = Server::new("s", "0").resource(resource("note://a/~b", "a", || async { "" }));
    let front = outer().mount("s", server.clone());
    let mut client = Client::open(&front, R4, json!({})).await;
    client.call("resources/subscribe", json!({"uri": "NOTE://a/%7eb"})).await;
    server.resource_updated("note://a/~b");
    let notified = client.receive().await;
    assert_eq!(notified["params"]["uri"], "note://a/~b");
    client.call("resources/unsubscribe", json!({"uri": "note://%61/~b"})).await;
    server.resource_updated("note://a/~b");
    client.call("ping", json!({})).await;
    assert!(client.received().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_spelling_of_a_hidden_file_of_a_directory_is_read() {
    let path = std::env::temp_dir().join(format!("pintle-spellings-{}", std::process::id()));
    std::fs::create_dir_all(path.join("private")).unwrap();
    std::fs::write(path.join("private/plan.txt"), "secret").unwrap();
    std::fs::write(path.join("open.txt"), "open").unwrap();
    let files = Directory::new(&path).unwrap();
    let prefix = files.uri_template().replace("{+path}", "");
    let server = Server::new("s", "0").source(files).gate(hide(&[&format!("{prefix}private/*")]));
    let mut client = Client::open(&server, R5, json!({})).await;
    let local = prefix.strip_prefix("file://").unwrap();
    for base in [
        prefix.clone(),
        format!("FILE://{local}"),
        format!("file:{local}"),
        format!("file://LOCALHOST{local}"),
    ] {
        let answer = read(&mut client, &format!("{base}open.txt")).await;
        assert_eq!(answer["result"]["contents"][0]["text"], "open", "{base} {answer}");
        for name in ["private/plan.txt", "%70rivate/plan.txt", "private%2Fplan.txt", "private//plan.txt"] {
            let answer = read(&mut client, &format!("{base}{name}")).await;
            assert!(answer["error"].is_object(), "{base}{name} {answer}");
        }
    }
    std::fs::remove_dir_all(&path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_spellings_are_counted_together_and_have_one_name_in_the_log() {
    let names: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = names.clone();
    let set = json!({"rules": [{"rate": {"calls": 2, "seconds": 60, "per": "tool"}, "decision": "allow"}]});
    let rules = Rules::audited(serde_json::from_value(set).unwrap(), move |record| {
        noted.lock().unwrap().push(format!("{} {}", record.name, record.decision));
    });
    let server = notes().0.gate(rules.unwrap());
    let mut client = Client::open(&server, R5, json!({})).await;
    for (uri, runs) in
        [("note://a/b", true), ("NOTE://%61/b", true), ("note://A/b", false), ("note://a/c", true)]
    {
        let answer = read(&mut client, uri).await;
        assert_eq!(answer["result"].is_object(), runs, "{uri} {answer}");
    }
    let names = names.lock().unwrap();
    assert_eq!(*names, ["note://a/b allow", "note://a/b allow", "note://A/b limit", "note://a/c allow"]);
}
