//! The example runs: users log in to it, and others are refused.

use std::{env, fs, path::PathBuf, process::Stdio};

use pintle::{
    Client, Error,
    client::http::{Http, Proxy},
};
use pintle_oauth::{
    client::{Network, OAuth},
    testing::{AuthorizationServer, User},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::Command,
};

/// The program of the example. Cargo builds it beside the tests, unless only one of them was asked for.
fn program(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    let built = built.with_extension(env::consts::EXE_EXTENSION);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified());
    let stale = changed(&source).unwrap() > changed(&built).unwrap_or(std::time::UNIX_EPOCH);
    assert!(!stale, "run `cargo build --package pintle-oauth --examples --all-features` first");
    built
}

async fn status(address: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_axum_application_lets_users_in_and_is_healthy() {
    let login = AuthorizationServer::listen().await.unwrap();
    login.subject("alice");
    let mut command = Command::new(program("axum_app"));
    command.args([login.issuer(), "127.0.0.1:0"]).env("no_proxy", "127.0.0.1");
    let mut app = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(app.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();

    assert_eq!(status(address, "/healthz").await, "HTTP/1.1 200 OK");
    assert_eq!(status(address, "/.well-known/oauth-protected-resource/mcp").await, "HTTP/1.1 200 OK");
    assert_eq!(status(address, "/mcp").await, "HTTP/1.1 401 Unauthorized");

    let network = || Network::with_proxy(Proxy::none());
    let oauth = OAuth::login("App", User::on(network())).web(network());
    let http = || Http::new(&url).unwrap().proxy(Proxy::none());
    let server = Client::new("test", "0").connect(http().auth(oauth)).await.unwrap();
    assert_eq!(server.call_tool("whoami", ()).await.unwrap().text(), "alice");
    server.close().await;

    // A token without the scope.
    let token = login.token(&pintle_oauth::testing::Claims::new(url.as_str()));
    let server = Client::new("test", "0").connect(http().bearer(token).unwrap()).await.unwrap();
    let refused = server.call_tool("clear", ()).await.unwrap_err();
    assert!(refused.to_string().contains("notes:write"), "{refused}");
    assert!(!matches!(refused, Error::Timeout(_)));
}
