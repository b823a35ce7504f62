//! What a filter hides does not exist: it is not listed, and cannot be called, read or completed.

use pintle::{
    Server,
    server::{Caller, Entry, Scope, prompt, resource, template, tool},
};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, Client, R5, not_found},
    line_client::Raw,
};

/// Every kind of thing twice: one that everybody sees, and one called `secret`.
fn server(sees_secrets: impl Fn(&Scope<'_>) -> bool + Send + Sync + 'static) -> Server {
    let mut server = Server::new("s", "0").tool_completion();
    for name in ["open", "secret"] {
        server = server
            .tool(
                tool(name, || async { "called" })
                    .input_schema(json!({"type": "object", "properties": {"x": {"enum": ["a"]}}})),
            )
            .prompt(prompt(name, || async { "got".to_owned() }).optional("x", "").argument_values("x", ["a"]))
            .resource(resource(format!("{name}://r"), name, || async { "read" }))
            .template(
                template(format!("{name}://t/{{x}}"), name, || async { "read" })
                    .complete("x", || async { vec!["a"] }),
            );
    }
    server.filter(move |scope, entry| {
        let name = match entry {
            Entry::Tool(tool) => &tool.name,
            Entry::Prompt(prompt) => &prompt.name,
            Entry::Resource(resource) => &resource.name,
            Entry::Template(template) => &template.name,
            Entry::Method(_) => return true,
        };
        name != "secret" || sees_secrets(scope)
    })
}

/// Checks all ways to a secret, and that the way to the rest is free.
async fn check(client: &mut Client, sees: bool) {
    for (method, list) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let result = client.call(method, json!({})).await["result"].clone();
        let names: Vec<_> = result[list].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
        assert_eq!(names.len(), if sees { 2 } else { 1 }, "{method} {names:?} {}", client.revision);
        if client.revision == R5 {
            assert_eq!(result["cacheScope"], "private", "a filtered list is nobody else's");
        }
    }
    for (name, there) in [("open", true), ("secret", sees)] {
        let complete = |reference: Value| json!({"ref": reference, "argument": {"name": "x", "value": ""}});
        for (method, params) in [
            ("tools/call", json!({"name": name})),
            ("prompts/get", json!({"name": name})),
            ("resources/read", json!({"uri": format!("{name}://r")})),
            ("resources/read", json!({"uri": format!("{name}://t/1")})),
            ("completion/complete", complete(json!({"type": "ref/prompt", "name": name}))),
            (
                "completion/complete",
                complete(json!({"type": "ref/resource", "uri": format!("{name}://t/{{x}}")})),
            ),
            ("completion/complete", complete(json!({"type": "ref/tool", "name": name}))),
        ] {
            let answer = client.call(method, params.clone()).await;
            assert_eq!(answer.get("result").is_some(), there, "{method} {params} {answer}");
            if !there {
                let unknown = params.to_string().replace("secret", "absent");
                let absent = client.call(method, serde_json::from_str(&unknown).unwrap()).await;
                let as_absent = answer["error"].to_string().replace("secret", "absent");
                assert_eq!(as_absent, absent["error"].to_string(), "nothing tells it from what is not there");
            }
        }
    }
}

#[tokio::test]
async fn by_principal() {
    let server = server(|scope| scope.principal == Some("ann"));
    for revision in ALL {
        for principal in ["ann", "bob"] {
            let raw = Raw::known(&server, Caller::new().principal(principal));
            let mut client = Client::over(raw, revision, json!({})).await;
            check(&mut client, principal == "ann").await;
        }
    }
}

#[tokio::test]
async fn by_what_a_layer_below_left() {
    #[derive(Clone)]
    struct Inside(bool);
    let server = server(|scope| scope.extensions.get::<Inside>().is_some_and(|inside| inside.0));
    for revision in ALL {
        for inside in [true, false] {
            let raw = Raw::known(&server, Caller::new().with(Inside(inside)));
            let mut client = Client::over(raw, revision, json!({})).await;
            check(&mut client, inside).await;
        }
    }
}

#[tokio::test]
async fn by_era() {
    let server = server(|scope| !scope.peer.revision.facts().keeps_session);
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        check(&mut client, revision == R5).await;
    }
}

#[tokio::test]
async fn changes_of_what_is_hidden_are_not_told() {
    let server = server(|scope| scope.principal == Some("ann"));
    for revision in ALL {
        for (principal, notified) in [
            (
                "ann",
                vec![
                    "open://r",
                    "open://r/part",
                    "open://t/1",
                    "secret://r",
                    "secret://r/part",
                    "secret://t/1",
                ],
            ),
            ("bob", vec!["open://r", "open://r/part", "open://t/1"]),
        ] {
            let raw = Raw::known(&server, Caller::new().principal(principal));
            let mut client = Client::over(raw, revision, json!({})).await;
            let uris = ["secret://r", "secret://t/1", "open://r", "open://t/1"];
            // Without a session, the subscription is granted without what is hidden.
            let refused = if principal == "ann" || client.is_stateless() { 0 } else { 2 };
            for uri in &uris[..refused] {
                let error = client.call("resources/subscribe", json!({"uri": uri})).await["error"].clone();
                assert_eq!(error["code"], not_found(&client), "{uri} {error}");
            }
            client.listen(&uris[refused..]).await;
            // What is a part of something is hidden with it.
            let parts = ["secret://r/part", "open://r/part"];
            uris.into_iter().chain(parts).for_each(|uri| server.resource_updated(uri));
            for uri in notified {
                assert_eq!(client.receive().await["params"]["uri"], uri, "{principal} {revision}");
            }
        }
    }
}
