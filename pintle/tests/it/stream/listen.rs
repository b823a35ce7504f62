//! `Server::serve_on` on every kind of address.

use std::{sync::Arc, time::Duration};

use pintle::{
    Client, Ended, Server,
    client::http::Http,
    server::{Listen, tool},
    transport::{Transport, tcp, unix},
};
use tokio::{
    net::TcpStream,
    sync::{Barrier, Semaphore},
};

use crate::support::http_socket::{Hands, request};

const GRACE: Duration = Duration::from_secs(60);

fn server() -> Server {
    Server::new("s", "0").tool(tool("greet", || async { "Hello!" }))
}

async fn greet(transport: impl Transport) {
    let connection = Client::new("c", "0").connect(transport).await.unwrap();
    assert_eq!(connection.call_tool("greet", ()).await.unwrap().text(), "Hello!");
    connection.close().await;
}

#[tokio::test]
async fn http_is_served_at_its_url_until_it_is_closed() {
    let serving = server().serve_on("http://127.0.0.1:0/tools".parse().unwrap()).await.unwrap();
    let address = serving.address().unwrap();
    assert_eq!(serving.url().unwrap(), format!("http://{address}/tools"));
    greet(Http::new(serving.url().unwrap()).unwrap()).await;
    let handle = serving.handle();
    handle.close(GRACE);
    assert_eq!(serving.wait().await.unwrap(), Ended::Stopped);
    assert_eq!(serving.close(GRACE).await.unwrap(), Ended::Stopped);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn http_requests_for_listed_hosts_are_answered_and_others_refused() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (listen, host, status) in [
        (Listen::http("127.0.0.1:0"), "mcp.example.com", 403),
        (Listen::http("127.0.0.1:0").hosts(["mcp.example.com"]), "mcp.example.com", 400),
        (Listen::http("127.0.0.1:0").hosts(["mcp.example.com"]), "localhost", 403),
    ] {
        let serving = server().serve_on(listen).await.unwrap();
        let text = request("POST /mcp", &[], body).replace("host: localhost", &format!("host: {host}"));
        assert_eq!(Hands::ask(serving.address().unwrap(), &text).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn http_settings_are_changed_and_may_be_refused() {
    let listen = Listen::http("127.0.0.1:0").configure_http(|http| Ok(http.at("/elsewhere")));
    let serving = server().serve_on(listen).await.unwrap();
    greet(Http::new(format!("http://{}/elsewhere", serving.address().unwrap())).unwrap()).await;
    let listen = Listen::http("127.0.0.1:0").configure_http(|http| http.trusted_proxies(["nonsense"]));
    assert!(server().serve_on(listen).await.unwrap_err().to_string().contains("nonsense"));
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let first = server().serve_on(Listen::http("127.0.0.1:0")).await.unwrap();
    let address = first.address().unwrap();
    for listen in [Listen::http(address), Listen::tcp(address)] {
        let error = server().serve_on(listen).await.unwrap_err().to_string();
        assert!(error.contains(&format!("cannot listen at `{address}`")), "{error}");
        assert!(error.contains("choose another port"), "{error}");
    }
}

#[tokio::test]
async fn an_invalid_catalogue_is_refused_before_anything_listens() {
    let server = server().tool(tool("greet", || async { "again" }));
    for listen in ["http://127.0.0.1:0", "tcp://127.0.0.1:0"] {
        let error = server.serve_on(listen.parse().unwrap()).await.unwrap_err().to_string();
        assert!(error.contains("a tool named `greet` is already registered"), "{error}");
    }
}

#[tokio::test]
async fn a_socket_serves_several_clients_and_waits_for_their_calls() {
    let (started, finish) = (Arc::new(Barrier::new(3)), Arc::new(Semaphore::new(0)));
    let server = server().tool(tool("wait", {
        let (started, finish) = (started.clone(), finish.clone());
        move || {
            let (started, finish) = (started.clone(), finish.clone());
            async move {
                started.wait().await;
                finish.acquire().await.unwrap().forget();
                "done"
            }
        }
    }));
    let serving = server.serve_on(Listen::tcp("127.0.0.1:0")).await.unwrap();
    let address = serving.address().unwrap();
    assert_eq!(serving.url().unwrap(), format!("tcp://{address}"));
    greet(tcp(address).await.unwrap()).await;

    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let connection = Client::new("c", "0").connect(tcp(address).await.unwrap()).await.unwrap();
        calls.spawn(async move { connection.call_tool("wait", ()).await.unwrap().text() });
    }
    started.wait().await;
    let handle = serving.handle();
    handle.close(GRACE);
    finish.add_permits(2);
    assert_eq!(calls.join_all().await, ["done", "done"]);
    assert_eq!(serving.wait().await.unwrap(), Ended::Stopped);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_second_close_shortens_the_grace_of_a_socket() {
    let started = Arc::new(Barrier::new(2));
    let server = server().tool(tool("hang", {
        let started = started.clone();
        move || {
            let started = started.clone();
            async move {
                started.wait().await;
                std::future::pending::<&str>().await
            }
        }
    }));
    let serving = server.serve_on(Listen::tcp("127.0.0.1:0")).await.unwrap();
    let transport = tcp(serving.address().unwrap()).await.unwrap();
    let connection = Client::new("c", "0").connect(transport).await.unwrap();
    let call = tokio::spawn(async move { connection.call_tool("hang", ()).await });
    started.wait().await;
    serving.handle().close(Duration::from_secs(3_600));
    tokio::task::yield_now().await;
    serving.handle().close(Duration::ZERO);
    assert_eq!(serving.wait().await.unwrap(), Ended::Stopped);
    assert!(call.await.unwrap().is_err());
}

#[tokio::test]
async fn the_clients_of_a_unix_socket_have_the_rights_of_this_user() {
    let path = std::env::temp_dir().join(format!("pintle-listen-{}.sock", std::process::id()));
    let server = server().tool(tool("secret", || async { "42" }).requires(["secrets"]));
    let serving = server.serve_on(Listen::unix(&path)).await.unwrap();
    assert_eq!(serving.url().unwrap(), format!("unix:{}", path.display()));
    assert_eq!(serving.address(), None);
    let connection = Client::new("c", "0").connect(unix(&path).await.unwrap()).await.unwrap();
    assert_eq!(connection.call_tool("secret", ()).await.unwrap().text(), "42");
    connection.close().await;
    serving.close(GRACE).await.unwrap();
    assert!(!path.exists());
}
