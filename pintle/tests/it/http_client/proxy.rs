//! Proxies: named by the caller or by the environment.

use std::process::Stdio;

use pintle::{
    Client,
    client::http::{Http, Proxy, Retry},
};
use tokio::{io::AsyncWriteExt, net::TcpListener};

use crate::http_client::socket::{Counted, request};

/// Set where this binary runs itself with another environment.
const INSIDE: &str = "PINTLE_TEST_INSIDE";
const FOUND: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}}"#;

/// Answers one request, and returns its head.
async fn answers_one(listener: &TcpListener) -> String {
    let (mut socket, _) = listener.accept().await.unwrap();
    let (head, _, _) = request(&mut socket, &mut vec![0; 64 << 10]).await.unwrap();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{FOUND}",
        FOUND.len()
    );
    socket.write_all(answer.as_bytes()).await.unwrap();
    head
}

#[tokio::test]
async fn a_request_through_a_proxy_names_the_whole_address() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:pass@{}", proxy.local_addr().unwrap());
    let http = Http::new("http://server.test/mcp").unwrap().proxy(Proxy::all(url));
    assert!(!format!("{http:?}").contains("pass"));
    let client = Client::new("t", "1");
    let (connected, head) = tokio::join!(client.connect(http), answers_one(&proxy));
    connected.unwrap();
    assert!(head.starts_with("POST http://server.test/mcp HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: server.test\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic dXNlcjpwYXNz"), "{head}");
}

#[tokio::test]
async fn a_host_that_is_excepted_is_spoken_to_directly() {
    let server = Counted::default();
    let url = server.listens().await;
    let proxy = Proxy::all("http://127.0.0.1:9").except("localhost,127.0.0.0/8");
    Client::new("t", "1").connect(Http::new(url).unwrap().proxy(proxy)).await.unwrap();
}

#[tokio::test]
async fn a_proxy_of_another_kind_is_an_error_that_names_it() {
    let mut retry = Retry::default();
    retry.requests = 0;
    let http =
        Http::new("http://server.test/mcp").unwrap().proxy(Proxy::all("socks5://127.0.0.1:9")).retry(retry);
    let error = Client::new("t", "1").connect(http).await.unwrap_err().to_string();
    assert!(error.contains("or another HTTP client"), "{error}");
}

#[tokio::test]
async fn the_environment_names_the_proxy() {
    if std::env::var_os(INSIDE).is_some() {
        let http = Http::new("http://server.test/mcp").unwrap();
        Client::new("t", "1").connect(http).await.unwrap();
        return;
    }
    for name in ["HTTP_PROXY", "http_proxy"] {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", proxy.local_addr().unwrap());
        let mut inside = std::process::Command::new(std::env::current_exe().unwrap());
        inside.args(["--exact", "http_client::proxy::the_environment_names_the_proxy"]);
        for unset in
            ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"]
        {
            inside.env_remove(unset);
        }
        let running = inside.env(INSIDE, "1").env(name, url).stdout(Stdio::null()).spawn().unwrap();
        let head = answers_one(&proxy).await;
        assert!(head.starts_with("POST http://server.test/mcp HTTP/1.1\r\n"), "{head}");
        let ended = tokio::task::spawn_blocking(move || running.wait_with_output()).await.unwrap().unwrap();
        assert!(ended.status.success());
    }
}
