//! A network that passes nothing on, a replica that takes over, and a process that is replaced: what a client sees.

use std::{net::SocketAddr, time::Duration};

use http::Request;
use pintle::{
    Server,
    server::{
        Cx,
        http::{Body, Http},
        tool,
    },
};
use pintle_redis::{Redis, RedisOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::timeout,
};

use crate::{
    faults::{INITIALIZE, PING, SESSION, next_message, post},
    formats::rewritten,
    outages::{call_stateless, reconnected},
    redis_server::RedisServer,
};

const SOON: Duration = Duration::from_secs(10);

/// A way to Redis.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// To the server on this port.
    To(u16),
    /// Connections stay open, and nothing arrives.
    Silent,
}

/// A proxy in front of a Redis, as a network or an address that moves is.
struct Network {
    port: u16,
    way: watch::Sender<Way>,
}

impl Network {
    async fn to(redis: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (way, state) = watch::channel(Way::To(redis.port()));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, state.clone()));
            }
        });
        Self { port, way }
    }

    /// Changes the way. Connections to another server are closed.
    fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    async fn connect(&self) -> Redis {
        let options = RedisOptions::default().timeout(Duration::from_millis(500));
        Redis::connect_with(&format!("redis://127.0.0.1:{}/", self.port), options).await.unwrap()
    }
}

async fn connect(client: TcpStream, mut way: watch::Receiver<Way>) {
    let Ok(found) = way.wait_for(|way| *way != Way::Silent).await.map(|way| *way) else { return };
    let Way::To(port) = found else { return };
    let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut moved = way.clone();
    tokio::select! {
        () = pass(from_client, to_server, way.clone()) => {}
        () = pass(from_server, to_client, way) => {}
        _ = moved.wait_for(|way| matches!(way, Way::To(other) if *other != port)) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let is_open = way.wait_for(|way| *way != Way::Silent).await.is_ok();
        if !is_open || to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

fn notes() -> Server {
    Server::new("notes", "1").may_change().tool(tool("hello", || async { "hello" })).tool(tool(
        "wait",
        |cx: Cx| async move {
            cx.progress(1.0, None).await;
            std::future::pending::<&str>().await
        },
    ))
}

async fn open(http: &Http) -> String {
    let opened = post(http, None, INITIALIZE).await;
    opened.headers()[SESSION].to_str().unwrap().to_owned()
}

/// Opens the GET stream of a session.
async fn listen(http: &Http, session: &str) -> Body {
    let request = Request::get("/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header(SESSION, session)
        .header("mcp-protocol-version", "2025-06-18");
    let (head, ()) = request.body(()).unwrap().into_parts();
    let response = timeout(SOON, http.answer(head, bytes::Bytes::new())).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_network_passes_nothing_on_is_503_and_its_sessions_go_on_elsewhere() {
    let Some(server) = RedisServer::start().await else { return };
    let network = Network::to(&server).await;
    let a = notes().http().unwrap().shared(network.connect().await);
    let b = notes().http().unwrap().shared(server.connect(&RedisOptions::default()).await.unwrap());
    let session = open(&a).await;
    network.set(Way::Silent);
    for (session, body) in [(Some(&*session), PING), (None, INITIALIZE)] {
        let refused = post(&a, session, body).await;
        assert_eq!(refused.status(), 503, "and not an unknown session");
        assert!(refused.headers().contains_key("retry-after"));
    }
    assert_eq!(call_stateless(&a).await, 200, "it needs no Redis");
    assert_eq!(post(&b, Some(&session), PING).await.status(), 200);
    network.set(Way::To(server.port()));
    assert_eq!(reconnected(&a, &session).await, 200, "the session is there as before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_takes_over_without_the_latest_writes_has_the_sessions_before_them() {
    let Some(primary) = RedisServer::start().await else { return };
    let Some(replica) = RedisServer::start().await else { return };
    replica.follow(&primary).await;
    let network = Network::to(&primary).await;
    let server = notes();
    let http = server.http().unwrap().shared(network.connect().await);
    let kept = open(&http).await;
    let mut stream = listen(&http, &kept).await;
    primary.replicated().await;
    // From here on nothing reaches the replica.
    replica.lead().await;
    let lost = open(&http).await;
    server.tools_changed();
    assert_eq!(next_message(&mut stream).await["method"], "notifications/tools/list_changed");
    primary.has_changes().await;
    network.set(Way::To(replica.port()));
    assert_eq!(reconnected(&http, &kept).await, 200);
    assert_eq!(post(&http, Some(&lost), PING).await.status(), 404, "its client opens a new one");
    // What others may have published is lost too, so the client is told that all may have changed.
    assert_eq!(next_message(&mut stream).await["method"], "notifications/tools/list_changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_replaced_ends_its_calls_and_its_sessions_go_on_at_another_version() {
    let Some(server) = RedisServer::start().await else { return };
    let service =
        async || notes().http().unwrap().shared(server.connect(&RedisOptions::default()).await.unwrap());
    let (old, new) = (service().await, service().await);
    let session = open(&old).await;
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":1}}}"#;
    let mut stream = post(&old, Some(&session), call).await.into_body();
    assert_eq!(next_message(&mut stream).await["method"], "notifications/progress");
    // Each version reads what the other writes: the one before, and one that has more to say.
    let key = format!("pintle:s:{{{session}}}");
    let more = |record: &str| record.replacen('{', r#"{"later":{"x":[1]},"#, 1);
    for format in [0, 1] {
        server.change(&key, rewritten(format, more)).await;
        for http in [&old, &new] {
            assert_eq!(post(http, Some(&session), PING).await.status(), 200, "format {format}");
        }
    }
    let (_, response) = tokio::join!(old.shutdown(Duration::ZERO), next_message(&mut stream));
    assert!(response["error"]["message"].is_string(), "{response}");
    assert_eq!(response["id"], 7);
    drop(old);
    assert_eq!(post(&new, Some(&session), PING).await.status(), 200);
}
