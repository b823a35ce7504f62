//! Tokens of the requests of an API: those of the file itself, and those of each caller.

use std::sync::{Arc, Mutex};

use pintle::{Client, Connection, client::http::Http};
use pintle_oauth::testing::{AuthorizationServer, Claims};
use serde_json::json;

use crate::support::{
    HttpServing, free_address::free_address, http_request::HttpRequest, machine::Machine, pintle, run,
    scripted_http,
};

const NOTES: &str = r#"
openapi: 3.1.0
info: { title: Notes, version: '1' }
components:
  securitySchemes:
    login:
      type: oauth2
      flows: { clientCredentials: { tokenUrl: /token, scopes: {} } }
security: [{ login: [] }]
paths:
  /notes: { get: { operationId: list } }
"#;

/// An API with a token endpoint that accepts one client, and keeps the requests.
fn api() -> (String, Arc<Mutex<Vec<String>>>) {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = requests.clone();
    let address = scripted_http::serve_with(move |request: &HttpRequest| {
        let whole = format!("{}{}", request.head, String::from_utf8_lossy(&request.body));
        kept.lock().unwrap().push(whole.clone());
        let is_client = whole.contains("authorization: Basic Ym90OmI0dHMzY3JldA==\r\n");
        match (request.path() == "/token", is_client) {
            (true, true) => ("200 OK", "application/json", r#"{"access_token":"t0ken"}"#.to_owned()),
            (true, false) => ("401 Unauthorized", "application/json", format!(r#"{{"error":"{whole:?}"}}"#)),
            (false, _) => ("200 OK", "application/json", "[]".to_owned()),
        }
    });
    (address, requests)
}

fn command(machine: &Machine, words: &[&str]) -> std::process::Command {
    let mut command = pintle();
    command.args(words).current_dir(machine.path("")).env("NOTES_SECRET", "b4ts3cret");
    command
}

async fn connect(url: &str, token: Option<&str>) -> Connection {
    let http = Http::new(url).unwrap();
    let http = match token {
        Some(token) => http.bearer(token).unwrap(),
        None => http,
    };
    Client::new("test", "1").connect(http).await.unwrap()
}

#[tokio::test]
async fn a_client_of_the_file_gets_a_token_for_all_calls() {
    let (api, requests) = api();
    let machine = Machine::new("api-client-credentials");
    machine.write("notes.yaml", NOTES);
    let file = format!(
        "[apis.notes]\ndocument = \"notes.yaml\"\nbase = \"http://{api}\"\n[apis.notes.secrets.login]\n\
         client_id = \"bot\"\nclient_secret = {{ env = \"NOTES_SECRET\" }}\nscopes = [\"read\"]\n"
    );
    machine.write("team.toml", &file);
    let mut serve = command(&machine, &["serve", "team.toml"]);
    serve.args(["--http", "127.0.0.1:0"]);
    let serving = HttpServing::of(serve);
    let client = connect(&serving.url, None).await;
    for _ in 0..2 {
        let result = client.call_tool("notes_list", json!({})).await.unwrap();
        assert_eq!(result.text(), "[]", "{:?}", requests.lock().unwrap());
    }
    let sent = std::mem::take(&mut *requests.lock().unwrap());
    assert_eq!(sent.len(), 3, "one token: {sent:?}");
    assert!(sent[0].ends_with("\r\n\r\ngrant_type=client_credentials&scope=read"), "{}", sent[0]);
    assert!(sent[2].contains("authorization: Bearer t0ken\r\n"), "{}", sent[2]);
    let planned = run(&mut command(&machine, &["serve", "team.toml", "--dry-run", "notes_list"]));
    assert!(planned.stdout.ends_with(" -H 'authorization: …'\n"), "{planned:?}");
    assert_eq!(requests.lock().unwrap().len(), 0, "a dry run sends nothing");
    let check = |file: &str| {
        machine.write("team.toml", file);
        run(&mut command(&machine, &["serve", "team.toml", "--check"]))
    };
    for (from, to, expected) in [
        ("{ env = \"NOTES_SECRET\" }", "\"b4ts3cret\"", "`client_secret` does not belong into this file"),
        ("\"NOTES_SECRET\"", "\"NO_SECRET\"", "the environment variable `NO_SECRET` is not set"),
        ("scopes", "token_url = \"https://a:b4ts3cret@b\"\nscopes", "the user or password of `token_url`"),
        (
            "secrets.login",
            "secrets.logn",
            "line 1: api `notes`: the secret of `logn`: there is no such security scheme",
        ),
    ] {
        let printed = check(&file.replacen(from, to, 1));
        assert!(printed.code == Some(1) && printed.stderr.contains(expected), "{to}: {printed:?}");
        assert!(!printed.stderr.contains("b4ts3cret"), "{printed:?}");
    }
}

#[tokio::test]
async fn each_caller_has_its_own_token_at_an_api() {
    let (api, requests) = api();
    let login = AuthorizationServer::listen().await.unwrap();
    login.add_client_with_secret("gateway", "b4ts3cret");
    let machine = Machine::new("api-exchange");
    machine.write("notes.yaml", NOTES);
    let (address, issuer) = (free_address().to_string(), login.issuer().to_owned());
    let api_table = format!("[apis.notes]\ndocument = \"notes.yaml\"\nbase = \"http://{api}\"\n");
    let exchange = format!(
        "[apis.notes.exchange]\ntoken_url = \"{}/token\"\nclient_id = \"gateway\"\n\
         client_secret = {{ env = \"NOTES_SECRET\" }}\n",
        issuer.trim_end_matches('/')
    );
    let auth = format!("[auth]\nissuer = \"{issuer}\"\nurl = \"http://{address}\"\n");
    machine.write("team.toml", &format!("{auth}{api_table}{exchange}"));
    let gateway = HttpServing::of(command(&machine, &["gateway", "team.toml", "--http", &address]));
    let token = |subject: &str| login.token(&Claims::new(format!("http://{address}/mcp")).subject(subject));
    let (ann, bob) = (token("ann"), token("bob"));
    for (subject, token) in [("ann", &ann), ("bob", &bob), ("ann", &ann)] {
        let client = connect(&gateway.url, Some(token)).await;
        let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["notes_list"]);
        assert_eq!(client.call_tool("notes_list", json!({})).await.unwrap().text(), "[]");
        let sent = requests.lock().unwrap().pop().unwrap();
        let (_, sent) = sent.split_once("authorization: Bearer ").unwrap();
        let sent = sent.lines().next().unwrap();
        assert!(*sent != *ann && *sent != *bob, "a token of a client was forwarded");
        let claims = login.claims_of(sent).unwrap();
        let audience = format!("http://{api}");
        assert_eq!((&claims["sub"], &claims["aud"]), (&subject.into(), &audience.into()));
    }
    let planned = run(&mut command(&machine, &["serve", "team.toml", "--dry-run", "notes_list"]));
    assert!(planned.stdout.ends_with(" -H 'authorization: …'\n"), "{planned:?}");
    // A token that the authorization server does not exchange any more is refused with the reason.
    login.revoke_access();
    let carol = token("carol");
    login.revoke_access();
    let client = connect(&gateway.url, Some(&carol)).await;
    let refused = client.call_tool("notes_list", json!({})).await.unwrap();
    let text = refused.text();
    assert!(refused.is_error == Some(true) && text.contains("there is no token for the request"), "{text}");
    assert!(requests.lock().unwrap().is_empty(), "nothing is sent without a token");
    for (file, expected) in [
        (
            format!("{api_table}{exchange}"),
            "`exchange` needs the tokens of an authorization server: add `[auth]`",
        ),
        (
            format!("{auth}{api_table}{exchange}").replace(&format!("base = \"http://{api}\"\n"), ""),
            "needs the URL that tokens are for: add `base`",
        ),
    ] {
        machine.write("team.toml", &file);
        let printed = run(&mut command(&machine, &["gateway", "team.toml", "--check"]));
        assert!(printed.stderr.contains(expected), "{printed:?}");
    }
}
