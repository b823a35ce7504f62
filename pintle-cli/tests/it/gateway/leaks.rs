//! What a rule of a gateway hides is nowhere, over HTTP and under every name that a gateway gives it.

use pintle::{
    Connection, Server,
    client::Mode,
    server::{prompt, resource, template, tool},
    types::schema::ContentBlock,
};
use serde_json::{Value, json};

use super::{connect, ended, gateway, names, page};
use crate::support::machine::Machine;

/// Every kind of thing twice, one with a name that hosts refuse, and links to all of it.
fn things(name: &'static str) -> Server {
    let mut server = Server::new(name, "0");
    for kind in ["open", "secret"] {
        let handler = move || async move { format!("{kind} ran") };
        server = server
            .tool(tool(kind, handler))
            .tool(tool(format!("{kind}.dotted{}", "x".repeat(80)), handler))
            .prompt(prompt(kind, handler).optional("x", "").argument_values("x", ["a"]))
            .resource(resource(format!("{kind}://r"), kind, handler))
            .template(
                template(format!("{kind}://t/{{x}}"), kind, handler).complete("x", || async { vec!["a"] }),
            );
    }
    let block = |block: Value| -> ContentBlock { serde_json::from_value(block).unwrap() };
    let links = move || {
        ["open://r", "secret://r", "open://t/1", "secret://t/1"]
            .map(|uri| block(json!({"type": "resource_link", "uri": uri, "name": "linked"})))
            .to_vec()
    };
    server.tool(tool("link", move || std::future::ready(links())))
}

/// Sends a request. Returns everything of the answer.
async fn answer(client: &Connection, method: &'static str, params: Value) -> String {
    match client.request::<_, Value>(method, &params).await {
        Ok(result) => result.to_string(),
        Err(error) => format!("{error} {error:?}"),
    }
}

/// The requests for a thing, by the name that a path has for its tool and prompt.
fn requests(name: &str, prefix: &str) -> Vec<(&'static str, Value)> {
    let complete = |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": ""}});
    let prefixed = format!("{prefix}_{name}");
    vec![
        ("tools/call", json!({"name": prefixed})),
        ("prompts/get", json!({"name": prefixed})),
        ("resources/read", json!({"uri": format!("{name}://r")})),
        ("resources/read", json!({"uri": format!("{name}://t/1")})),
        ("completion/complete", complete(json!({"type": "ref/prompt", "name": prefixed}))),
        (
            "completion/complete",
            complete(json!({"type": "ref/resource", "uri": format!("{name}://t/{{x}}")})),
        ),
    ]
}

#[tokio::test]
async fn what_is_hidden_is_nowhere() {
    let vault = things("vault").serve_http("127.0.0.1:0").await.unwrap();
    let ghost = things("ghost").serve_http("127.0.0.1:0").await.unwrap();
    let machine = Machine::new("gateway-leaks");
    let file = format!(
        r#"
        audit = "audit.jsonl"
        [targets.vault]
        url = "http://{}/mcp"
        tools.link = {{ rename = "links" }}

        [targets.ghost]
        url = "http://{}/mcp"
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
        resources = ["secret:*"]
        decision = "hide"

        [[rules]]
        decision = "allow"
        "#,
        vault.address(),
        ghost.address()
    );
    let gateway = gateway(&machine, &file);
    let unknown = "absent";
    for path in ["", "/vault", "/small"] {
        for mode in [Mode::Legacy, Mode::Modern] {
            let url = format!("{}{path}", gateway.url);
            let alice = connect(&url, "alice-token", mode).await;
            let all = names(&alice, |names| names.iter().any(|name| name.contains("secret"))).await;
            let short =
                all.iter().find(|name| name.contains("secret_dotted")).expect("a name that was changed");
            assert!(short.len() <= 64, "{short}");
            let bob = connect(&url, "bob-token", mode).await;
            names(&bob, |names| names.iter().any(|name| name == "vault_links")).await;
            let mut seen = vec![format!("{:?}", bob.server_info())];
            for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
                seen.push(answer(&bob, list, json!({})).await);
            }
            seen.push(answer(&bob, "tools/call", json!({"name": "vault_links"})).await);
            assert!(seen.iter().any(|seen| seen.contains("open://t/1")), "{path}: {seen:#?}");
            for seen in &seen {
                assert!(!seen.contains("secret") && !seen.contains("ghost"), "{path} {mode:?}: {seen}");
            }
            // A request for it is answered as one for what does not exist.
            for prefix in ["vault", "ghost"] {
                let hidden = requests("secret", prefix).into_iter().zip(requests(unknown, prefix));
                for ((method, hidden), (_, absent)) in hidden {
                    let (found, expected) =
                        (answer(&bob, method, hidden).await, answer(&bob, method, absent).await);
                    assert_eq!(found.replace("secret", unknown), expected, "{path} {mode:?} {method}");
                }
            }
            for name in [short.as_str(), "vault_plain"] {
                let error = answer(&bob, "tools/call", json!({"name": name})).await;
                assert!(error.contains("no such tool") && !error.contains("ran"), "{path} {mode:?}: {error}");
            }
        }
    }
    for page in ["/metrics", "/ready"].map(|path| page(&gateway, path, "bob-token\r\nVia: 1.1 proxy")) {
        assert!(!page.contains("vault") && !page.contains("ghost"), "{page}");
    }
    // The operator reads what was refused.
    let audit = ended(gateway, &machine, "audit.jsonl");
    assert!(audit.contains("\"BOB\"") && audit.contains("\"hide\""), "{audit}");
}
