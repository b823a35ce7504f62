//! Our service in somebody else's server, and somebody else's framework in ours: with layers around it, for clients of
//! every revision.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, extract::Request as AxumRequest, middleware::Next, response::Response as AxumResponse};
use pintle::{
    Server,
    proto::http::Guard,
    server::{
        Cx, Extension, PeerAddress,
        http::{BodyLimits, Cors, Http, HttpServer},
        tool,
    },
};
use tokio::net::TcpListener;
use tower_service::Service as _;

use crate::support::{
    eras::{ALL, R1},
    http_server::{World, client, connect, marked, remote, soon, wait_for},
    http_socket::{Hands, request},
};

/// Who is calling, as a layer of the application found out.
#[derive(Clone)]
struct User(String);

/// Says who calls, and how far it is.
fn service() -> Http {
    let whoami = |cx: Cx, Extension(user): Extension<User>| async move {
        cx.progress(1.0, None).await;
        let from = cx.extensions().get::<PeerAddress>().map_or("", |_| ", from somewhere");
        format!("{} ({}){from}", user.0, cx.principal().unwrap_or("nobody"))
    };
    let mut limits = BodyLimits::default();
    limits.limit = 4096;
    let server = Server::new("mounted", "1").tool(tool("whoami", whoami));
    let http = server.http().unwrap().body_limits(limits).two_endpoints("/sse", "/messages");
    http.principal(|head| Some(head.extensions.get::<User>()?.0.to_uppercase()))
}

/// What an application does: it looks who it is, and tells the rest.
async fn authenticate(mut request: AxumRequest, next: Next) -> AxumResponse {
    let name = request.headers().get("x-user").and_then(|name| name.to_str().ok()).unwrap_or("nobody");
    let user = User(name.to_owned());
    request.extensions_mut().insert(user);
    next.run(request).await
}

fn app(http: &Http) -> Router {
    Router::new()
        .route_service("/mcp", http.clone())
        .route_service("/sse", http.clone())
        .route_service("/messages", http.clone())
        .layer(axum::middleware::from_fn(authenticate))
        .layer(Cors::new(Guard::loopback().origins(["https://app.example.com"])))
}

/// Calls it as a client of each revision, with progress, as one user.
async fn as_everyone(address: SocketAddr, http: &Http, expected: &str) {
    for revision in ALL {
        let (client, remote) = (client(revision, "c"), remote(revision, address).header("x-user", "ann"));
        let connection = soon(client.connect(remote)).await.unwrap();
        let (steps, mut received) = tokio::sync::mpsc::unbounded_channel();
        let call = connection.call("whoami").on_progress(move |step| steps.send(step.progress).unwrap());
        let result = soon(call.send()).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some(expected), "{revision}");
        assert_eq!(soon(received.recv()).await, Some(1.0), "{revision}");
        soon(connection.close()).await;
    }
    wait_for(|| http.sessions() == 0).await;
}

/// The layers and the limits hold.
async fn keeps_its_rules(address: SocketAddr) {
    let large = Hands::ask(address, &request("POST /mcp", &[], &"x".repeat(5000))).await;
    assert_eq!(large.status, 413);
    assert!(large.body.contains("the body is larger than 4096 bytes; send less"), "{large:?}");
    let origin = ("origin", "https://app.example.com");
    let asks = request("OPTIONS /mcp", &[origin, ("access-control-request-method", "POST")], "");
    let asked = Hands::ask(address, &asks).await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-origin"), Some("https://app.example.com"));
    assert_eq!(Hands::ask(address, &request("GET /other", &[], "")).await.status, 404);
}

#[tokio::test]
async fn in_axum() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, http) = (listener.local_addr().unwrap(), service());
    let app = app(&http);
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    as_everyone(address, &http, "ann (ANN)").await;
    keeps_its_rules(address).await;
    serving.abort();
}

#[tokio::test]
async fn axum_in_our_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let http = service();
    let serving = HttpServer::new(app(&http)).serve(listener).unwrap();
    as_everyone(serving.address(), &http, "ann (ANN), from somewhere").await;
    keeps_its_rules(serving.address()).await;
    assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
}

#[tokio::test]
async fn below_a_path_of_axum() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let http = service().two_endpoints("/api/sse", "/api/messages");
    let inner = Router::new().fallback_service(http.clone());
    let app = Router::new().nest("/api", inner).layer(axum::middleware::from_fn(authenticate));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    for (revision, path) in ALL.map(|revision| (revision, if revision == R1 { "sse" } else { "mcp" })) {
        let url = format!("http://{address}/api/{path}");
        let remote = pintle::client::http::Http::new(url).unwrap();
        let remote = remote.proxy(pintle::client::http::Proxy::none()).header("x-user", "ann");
        let connection = soon(client(revision, "c").connect(remote)).await.unwrap();
        let result = soon(connection.call_tool("whoami", ())).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("ann (ANN)"), "{revision}");
        soon(connection.close()).await;
    }
    serving.abort();
}

#[tokio::test]
async fn the_graceful_shutdown_of_axum_does_not_wait_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let world = World::new();
    let http = world.http.clone();
    let app = Router::new()
        .route_service("/mcp", http.clone())
        .route_service("/sse", http.clone())
        .route_service("/messages", http.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let signal = async move {
            let _ = stopped.await;
            http.shutdown(Duration::ZERO).await;
        };
        axum::serve(listener, app).with_graceful_shutdown(signal).await
    });
    // Each holds a stream open for changes, and waits for a call that never ends.
    let mut waiting = Vec::new();
    for revision in ALL {
        let connection = connect(revision, revision, address).await;
        let changes = soon(connection.changes()).await.unwrap();
        waiting.push(tokio::spawn(async move {
            let ended = marked(&connection, "hold", "a").await;
            drop(changes);
            ended.map_err(|error| error.to_string())
        }));
    }
    wait_for(|| world.alive() == ALL.len()).await;
    stop.send(()).unwrap();
    soon(serving).await.unwrap().unwrap();
    for (revision, waiting) in ALL.iter().zip(waiting) {
        let error = soon(waiting).await.unwrap().unwrap_err();
        assert!(error.contains("the server is shutting down"), "{revision}: {error}");
    }
    world.empty().await;
}

#[tokio::test]
async fn in_bare_hyper() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, http) = (listener.local_addr().unwrap(), service());
    let mounted = http.clone();
    let serving = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let http = mounted.clone();
            let service =
                hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
                    request.extensions_mut().insert(User("hyper".into()));
                    http.clone().call(request)
                });
            let socket = hyper_util::rt::TokioIo::new(socket);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(socket, service));
        }
    });
    as_everyone(address, &http, "hyper (HYPER)").await;
    serving.abort();
}

#[tokio::test]
async fn handlers_read_the_address_of_the_client() {
    let from = |cx: Cx, Extension(PeerAddress(from)): Extension<PeerAddress>| async move {
        format!("{}, {}", from.ip(), cx.principal().unwrap_or("nobody"))
    };
    let server = Server::new("mounted", "1").tool(tool("from", from));
    let http = || server.http().unwrap().two_endpoints("/sse", "/messages");
    let ip = |head: &http::request::Parts| Some(head.extensions.get::<PeerAddress>()?.0.ip().to_string());
    for (http, expected) in [(http(), "127.0.0.1, nobody"), (http().principal(ip), "127.0.0.1, 127.0.0.1")] {
        let serving = http.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        for revision in ALL {
            let remote = remote(revision, serving.address());
            let connection = soon(client(revision, "c").connect(remote)).await.unwrap();
            let result = soon(connection.call("from").send()).await.unwrap();
            assert_eq!(result.content[0].as_text(), Some(expected), "{revision}");
            soon(connection.close()).await;
        }
        assert_eq!(serving.shutdown(Duration::from_secs(20)).await.aborted, 0);
    }
}
