//! What a rule of a gateway hides is nowhere, over HTTP and under every name that a gateway gives it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use pintle::{
    Client, Connection, Server,
    client::{Mode, http::Http},
    server::{CacheHint, Cx, prompt, resource, template, tool},
    types::schema::{CacheScope, ContentBlock, LoggingLevel, PromptMessage, ResourceContents},
};
use pintle_tasks::Tasks;
use serde_json::{Value, json};

use super::{ended, gateway, names, page, target, tasks};
use crate::support::machine::Machine;

const LISTS: [&str; 4] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
const LINKS: [&str; 4] = ["open://r", "secret://r", "open://t/1", "secret://t/1"];

/// Every kind of thing twice, one with a name that hosts refuse, and links to all of it in everything that may have some. Its lists may be
/// cached by anybody, and its tools log.
fn things(name: &'static str) -> Server {
    let public = CacheHint::new(1000, CacheScope::Public);
    let mut server = Server::new(name, "0")
        .instructions(format!("Use the {name}."))
        .cache_lists(public.clone())
        .logging()
        .with(Tasks::new());
    for kind in ["open", "secret"] {
        let handler = move |cx: Cx| async move {
            cx.log(LoggingLevel::Info, None, &format!("{kind} is running")).await;
            format!("{kind} ran")
        };
        server = server
            .tool(tool(kind, handler))
            .tool(tool(format!("{kind}.dotted{}", "x".repeat(80)), handler))
            .prompt(prompt(kind, handler).optional("x", "").argument_values("x", ["a"]))
            .resource(resource(format!("{kind}://r"), kind, handler).cache(public.clone()))
            .template(
                template(format!("{kind}://t/{{x}}"), kind, handler).complete("x", || async { vec!["a"] }),
            );
    }
    let links = || {
        let link = |uri| json!({"type": "resource_link", "uri": uri, "name": "linked"});
        LINKS.map(|uri| serde_json::from_value::<ContentBlock>(link(uri)).unwrap()).to_vec()
    };
    let messages = move || links().into_iter().map(PromptMessage::user).collect::<Vec<_>>();
    let contents = || LINKS.map(|uri| ResourceContents::text(uri, "linked")).to_vec();
    let folders = template("note://{folder}/1", "notes", || async { "" });
    server
        .tool(tool("link", move || std::future::ready(links())))
        .tool(tool("report", move || std::future::ready(links())).task("required"))
        .prompt(prompt("link", move || std::future::ready(messages())))
        .resource(resource("open://index", "index", move || std::future::ready(contents())))
        .template(folders.complete("folder", || async { vec!["open", "secret"] }))
}

/// Sends a request. Returns everything of the answer.
async fn answer(client: &Connection, method: &'static str, params: Value) -> String {
    match client.request::<_, Value>(method, &params).await {
        Ok(result) => result.to_string(),
        Err(error) => format!("{error} {error:?}"),
    }
}

fn complete(reference: &Value, argument: &str) -> Value {
    json!({"ref": reference, "argument": {"name": argument, "value": ""}})
}

/// The requests for a thing, by the name that a path has for its tool and prompt.
fn requests(name: &str, prefix: &str) -> Vec<(&'static str, Value)> {
    let prefixed = format!("{prefix}_{name}");
    let template = json!({"type": "ref/resource", "uri": format!("{name}://t/{{x}}")});
    vec![
        ("tools/call", json!({"name": prefixed})),
        ("tools/call", json!({"name": prefixed, "task": {"ttl": 60000}})),
        ("prompts/get", json!({"name": prefixed})),
        ("resources/read", json!({"uri": format!("{name}://r")})),
        ("resources/read", json!({"uri": format!("{name}://t/1")})),
        ("completion/complete", complete(&json!({"type": "ref/prompt", "name": prefixed}), "x")),
        ("completion/complete", complete(&template, "x")),
    ]
}

/// A client with what it is told in log messages.
async fn listening(url: &str, token: &str, mode: Mode) -> (Connection, Arc<Mutex<Vec<String>>>) {
    let logged: Arc<Mutex<Vec<String>>> = Arc::default();
    let written = logged.clone();
    let client = Client::new("host", "1.0.0").mode(mode).log_level(LoggingLevel::Debug);
    let client = client.on_log(move |log| written.lock().unwrap().push(format!("{:?}", log.params)));
    let transport = Http::new(url).unwrap().bearer(token).unwrap();
    (client.connect(transport).await.unwrap(), logged)
}

/// Has bob look everywhere. Returns what it is told.
async fn look(bob: &Connection, mode: Mode) -> Vec<String> {
    let mut seen = vec![format!("{:?} {:?}", bob.server_info(), bob.instructions())];
    for list in LISTS {
        seen.push(answer(bob, list, json!({})).await);
    }
    seen.push(answer(bob, "resources/read", json!({"uri": "open://r"})).await);
    for cached in seen.iter().skip(1).filter(|_| mode == Mode::Modern) {
        assert!(cached.contains("\"cacheScope\":\"private\""), "{cached}");
    }
    for (method, params) in [
        ("tools/call", json!({"name": "vault_links"})),
        ("prompts/get", json!({"name": "vault_link"})),
        ("resources/read", json!({"uri": "open://index"})),
    ] {
        seen.push(answer(bob, method, params).await);
        assert!(seen.last().unwrap().contains("open://t/1"), "{method}: {seen:#?}");
    }
    let folders = json!({"type": "ref/resource", "uri": "note://{folder}/1"});
    seen.push(answer(bob, "completion/complete", complete(&folders, "folder")).await);
    assert!(seen.last().unwrap().contains("\"open\""), "{seen:#?}");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_is_nowhere() {
    let vault = things("vault").serve_http("127.0.0.1:0").await.unwrap();
    let ghost = things("ghost").serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-leaks");
    let (vault, ghost) = (target("vault", vault.address()), target("ghost", ghost.address()));
    let file = format!(
        r#"
        audit = "audit.jsonl"
        {vault}
        tools.link = {{ rename = "links" }}

        {ghost}
        prefix_uris = true

        [servers.small]
        targets = ["vault", "ghost"]
        tools.vault_secret = {{ rename = "vault_plain" }}

        [[rules]]
        principals = ["ALICE"]
        decision = "allow"

        [[rules]]
        backends = ["ghost"]
        decision = "hide"

        [[rules]]
        tools = ["*secret*"]
        prompts = ["*secret*"]
        resources = ["secret:*", "note://secret/*"]
        decision = "hide"

        [[rules]]
        decision = "allow"
        "#
    );
    let gateway = gateway(&machine, &file);
    let unknown = "absent";
    let mut sent = BTreeSet::new();
    for path in ["", "/vault", "/small"] {
        for mode in [Mode::Legacy, Mode::Modern] {
            let at = format!("{path} {mode:?}");
            let url = format!("{}{path}", gateway.url);
            let (bob, logged) = listening(&url, "bob-token", mode).await;
            let (alice, notified) = listening(&url, "alice-token", mode).await;
            let all = names(&alice, |names| names.iter().any(|name| name.contains("secret"))).await;
            let short =
                all.iter().find(|name| name.contains("secret_dotted")).expect("a name that was changed");
            assert!(short.len() <= 64, "{short}");
            // What others run is not logged to bob.
            let secret = if path == "/small" { "vault_plain" } else { "vault_secret" };
            assert_eq!(alice.call_tool(secret, ()).await.unwrap().text(), "secret ran");
            assert!(
                notified.lock().unwrap().iter().any(|notified| notified.contains("secret is running")),
                "{at}"
            );
            let mut seen = look(&bob, mode).await;
            assert_eq!(bob.call_tool("vault_open", ()).await.unwrap().text(), "open ran");
            seen.extend(logged.lock().unwrap().iter().cloned());
            assert!(seen.iter().any(|seen| seen.contains("open is running")), "{at}: {seen:#?}");
            let following = tasks::connect(&url, "bob-token", mode).await;
            let task = tasks::start(&following, "vault_report").await;
            seen.push(format!("{:?}", task.result().await.unwrap()));
            assert!(
                seen[0].contains("Use the vault.") && seen.last().unwrap().contains("open://t/1"),
                "{at}"
            );
            let refused = following.call("vault_secret").start().await.err().map(|error| error.to_string());
            assert!(refused.is_some_and(|error| error.contains("no such tool")), "{at}");
            for seen in &seen {
                assert!(!seen.contains("secret") && !seen.contains("ghost"), "{at}: {seen}");
            }
            // A request for it is answered as one for what does not exist.
            for prefix in ["vault", "ghost"] {
                let hidden = requests("secret", prefix).into_iter().zip(requests(unknown, prefix));
                for ((method, hidden), (_, absent)) in hidden {
                    sent.insert(hidden.to_string());
                    let (found, expected) =
                        (answer(&bob, method, hidden).await, answer(&bob, method, absent).await);
                    assert_eq!(found.replace("secret", unknown), expected, "{at} {method}");
                }
            }
            for name in [short.as_str(), "vault_plain"] {
                sent.insert(json!({"name": name}).to_string());
                let error = answer(&bob, "tools/call", json!({"name": name})).await;
                assert!(error.contains("no such tool") && !error.contains("ran"), "{at}: {error}");
            }
            let notified = logged.lock().unwrap().concat();
            assert!(!notified.contains("secret") && !notified.contains("ghost"), "{at}: {notified}");
            // Nor is it what was perhaps meant.
            for (method, near) in [("tools/call", "vault_sekret"), ("prompts/get", "ghost_sekret")] {
                let meant = answer(&alice, method, json!({"name": near})).await;
                assert!(!path.is_empty() || meant.contains("secret"), "{at}: {meant}");
                let meant = answer(&bob, method, json!({"name": near})).await.replace(near, "");
                assert!(!meant.contains("secret") && !meant.contains("ghost"), "{at}: {meant}");
            }
        }
    }
    for page in ["/metrics", "/ready"].map(|path| page(&gateway, path, "bob-token\r\nVia: 1.1 proxy")) {
        assert!(!page.contains("vault") && !page.contains("ghost"), "{page}");
    }
    // The operator reads what was refused: what bob has asked for, and nothing that it has only not been shown.
    let audit = ended(gateway, &machine, "audit.jsonl");
    assert!(audit.contains("\"BOB\"") && audit.contains("\"hide\""), "{audit}");
    let mut asked = BTreeMap::<(String, String), usize>::new();
    for line in audit.lines().filter(|line| line.contains("\"BOB\"")) {
        let read: Value = serde_json::from_str(line).unwrap();
        let [access, name] = ["access", "name"].map(|member| read[member].as_str().unwrap().to_owned());
        *asked.entry((access, name)).or_default() += 1;
        let is_hidden = line.contains("secret") || line.contains("ghost");
        let has_sent = sent.iter().any(|sent| sent.contains(&read["name"].to_string()));
        assert_eq!((is_hidden, is_hidden), (has_sent, read["decision"] == "hide"), "{line}");
    }
    // Each request has its line, at every path: three of them in two eras, with two names.
    for (access, name, count) in [
        ("read", "secret://r", 12),
        ("read", "secret://t/1", 12),
        ("complete", "vault_secret", 6),
        ("complete", "secret://t/{x}", 12),
    ] {
        assert_eq!(
            asked.get(&(access.to_owned(), name.to_owned())),
            Some(&count),
            "{access} {name}: {asked:?}"
        );
    }
}
