//! Tokens of an authorization server: each path is a resource of its own.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
};

use pintle::{
    Client, Server,
    client::{Mode, http::Http},
    server::{Cx, tool},
};
use pintle_oauth::testing::{AuthorizationServer, Claims};
use serde_json::Value;

use super::{connect, names};
use crate::support::{HttpServing, free_address::free_address, machine::Machine, pintle};

/// A request with a token, or none. Returns the whole response.
fn get(address: &str, path: &str, token: Option<&str>) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}

/// A server that records the headers of the requests to it.
async fn recording() -> (String, Arc<Mutex<Vec<String>>>, pintle::server::http::HttpServing) {
    let recorded: Arc<Mutex<Vec<String>>> = Arc::default();
    let headers = recorded.clone();
    let write = tool("write", move |cx: Cx| {
        let headers = headers.clone();
        async move {
            let sent = format!("{:?}", cx.http().map(|head| head.headers.clone()));
            headers.lock().unwrap().push(sent);
            "written"
        }
    });
    let server = Server::new("notes", "0").tool(write).tool(tool("read", || async { "read" }));
    let serving = server.serve_http("127.0.0.1:0").await.unwrap();
    (format!("http://{}/mcp", serving.address()), recorded, serving)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_is_for_one_path_names_the_principal_and_is_never_forwarded() {
    let login = AuthorizationServer::listen().await.unwrap();
    let (backend, recorded, _serving) = recording().await;
    let machine = Machine::new("gateway-protected");
    // The URL is in the file, so the port has to be known.
    let free = free_address().to_string();
    machine.write(
        "team.toml",
        &format!(
            r#"
            [auth]
            issuer = "{}"
            url = "http://{free}"
            scopes = ["mcp"]

            [targets.notes]
            url = "{backend}"

            [servers.reading]
            only = ["notes_read"]

            [[rules]]
            tools = ["notes_write"]
            rights = ["notes:write"]
            principals = ["ann"]
            decision = "allow"

            [[rules]]
            tools = ["notes_read"]
            decision = "allow"
            "#,
            login.issuer()
        ),
    );
    let mut command = pintle();
    command.args(["gateway", "team.toml", "--http", &free]).current_dir(machine.path(""));
    let gateway = HttpServing::of(command);
    let resource = |path: &str| format!("http://{free}/mcp{path}");
    let token = |subject: &str, path: &str, scopes: &str| {
        login.token(&Claims::new(resource(path)).subject(subject).scopes(scopes.split(' ')))
    };

    let ann = token("ann", "", "mcp notes:write");
    for mode in [Mode::Legacy, Mode::Modern] {
        let client = connect(&gateway.url, &ann, mode).await;
        let all = names(&client, |names| names.len() == 2).await;
        assert_eq!(all, ["notes_write", "notes_read"]);
        assert_eq!(client.call_tool("notes_write", ()).await.unwrap().text(), "written");
        // Neither the name nor the rights alone are enough.
        for other in [token("bob", "", "mcp notes:write"), token("ann", "", "mcp")] {
            let client = connect(&gateway.url, &other, mode).await;
            assert_eq!(names(&client, |names| !names.is_empty()).await, ["notes_read"]);
        }
        let reading = token("ann", "/reading", "mcp notes:write");
        let client = connect(&resource("/reading"), &reading, mode).await;
        assert_eq!(names(&client, |names| !names.is_empty()).await, ["notes_read"]);
    }
    let headers = recorded.lock().unwrap().join("\n");
    assert!(
        !headers.is_empty() && !headers.contains("authorization") && !headers.contains(&ann),
        "{headers}"
    );

    // A token for one path is not one for another.
    let refused = [
        (resource("/reading"), ann.clone()),
        (resource("/notes"), ann.clone()),
        (resource(""), token("ann", "/notes", "mcp")),
        (resource(""), token("ann", "", "other")),
        (resource(""), "nonsense".to_owned()),
    ];
    for (url, token) in refused {
        let client = Client::new("host", "1.0.0");
        let connected = client.connect(Http::new(&url).unwrap().bearer(&token).unwrap()).await;
        assert!(connected.is_err(), "{url}");
    }
    for path in ["", "/notes", "/reading"] {
        let challenge = get(&free, &format!("/mcp{path}"), None);
        let metadata = format!("/.well-known/oauth-protected-resource/mcp{path}");
        assert!(challenge.starts_with("HTTP/1.1 401"), "{challenge}");
        assert!(challenge.contains(&format!("http://{free}{metadata}\"")), "{challenge}");
        let document = get(&free, &metadata, None);
        let document: Value = serde_json::from_str(document.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(document["resource"], resource(path));
        assert_eq!(document["authorization_servers"][0], login.issuer());
    }
    assert!(get(&free, "/health", None).contains("ok"));
    for page in ["/ready", "/metrics"] {
        assert!(get(&free, page, None).starts_with("HTTP/1.1 401"));
        assert!(get(&free, page, Some(&ann)).starts_with("HTTP/1.1 200"));
    }
}
