//! Who opens many sessions, and who still gets one.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Request;
use pintle::{
    Server, Timeouts,
    proto::Limits,
    server::{PeerAddress, http::Http, resource, tool},
};
use serde_json::{Value, json};

use crate::support::{
    eras::R4,
    http_client::{Answer, Wire},
};

fn server() -> Server {
    Server::new("s", "0").tool(tool("one", || async { "" }))
}

fn principals(http: Http) -> Http {
    http.principal(|head| head.headers.get("user").map(|user| user.to_str().unwrap().to_owned()))
}

fn initialize() -> Value {
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params})
}

fn from(address: &str, mut request: Request<String>) -> Request<String> {
    let address: SocketAddr = address.parse().unwrap();
    request.extensions_mut().insert(PeerAddress(address));
    request
}

/// A handshake from an address, and the session's wire if there is one.
async fn handshake(wire: &Wire, address: &str) -> (Answer, Option<Wire>) {
    let answer = wire.send(from(address, wire.request("POST", "/mcp", initialize().to_string()))).await;
    let id = answer.headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    (answer, id.map(|id| wire.with("mcp-session-id", id).with("mcp-protocol-version", R4)))
}

/// The same, and the client says that it is there.
async fn opened(wire: &Wire, address: &str) -> Wire {
    let session = handshake(wire, address).await.1.unwrap();
    let notified = session.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(notified.status, 202);
    session
}

async fn is_there(session: &Wire) -> bool {
    session.call(1, "tools/list", json!({})).await.status == 200
}

#[tokio::test]
async fn handshakes_that_lead_nowhere_lock_nobody_out() {
    let http = server().http().unwrap().max_sessions(8);
    let wire = Wire::new(&http);
    let mine = opened(&wire, "192.0.2.1:1").await;
    for n in 0..100 {
        let (answer, session) = handshake(&wire, &format!("198.51.100.{n}:1")).await;
        assert_eq!((answer.status.as_u16(), session.is_some()), (200, true));
    }
    assert_eq!(http.sessions(), 6, "the last quarter is for principals");
    let other = opened(&wire, "192.0.2.2:1").await;
    assert!(is_there(&other).await);
    assert!(is_there(&mine).await);
}

#[tokio::test]
async fn who_has_most_sessions_gives_way_and_nobody_else() {
    let http = principals(server().http().unwrap().max_sessions(4));
    let wire = Wire::new(&http);
    let ann = opened(&wire.with("user", "ann"), "192.0.2.1:1").await;
    let bob = opened(&wire.with("user", "bob"), "192.0.2.1:1").await;
    let first = opened(&wire.with("user", "eve"), "192.0.2.1:1").await;
    let second = opened(&wire.with("user", "eve"), "192.0.2.1:1").await;
    // Room is made among the sessions of the one who wants more, or who has most.
    opened(&wire.with("user", "eve"), "192.0.2.1:1").await;
    assert!(!is_there(&first).await);
    assert!(is_there(&second).await);
    opened(&wire.with("user", "joe"), "192.0.2.1:1").await;
    assert_eq!(http.sessions(), 4);
    // Now each has one.
    let (mut refused, none) = handshake(&wire.with("user", "zoe"), "192.0.2.1:1").await;
    assert!(none.is_none());
    assert_eq!(refused.status, 503);
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    let error = refused.json().await;
    assert_eq!(error["id"], 7);
    assert!(error["error"]["data"]["retryAfterMs"].as_u64().unwrap() > 0, "{error}");
    assert!(is_there(&ann).await && is_there(&bob).await);
}

#[tokio::test]
async fn finished_handshakes_of_ten_addresses_shut_nobody_out() {
    let http = principals(server().http().unwrap().max_sessions(100).max_sessions_per_address(10));
    let wire = Wire::new(&http);
    let mine = opened(&wire, "192.0.2.1:1").await;
    let mut streams = Vec::new();
    for n in 0..100 {
        let Some(session) = handshake(&wire, &format!("198.51.{}.1:1", n % 10)).await.1 else { continue };
        // They are in use for ever.
        streams.push(session.get().await);
    }
    assert_eq!(http.sessions(), 75, "the last quarter is for principals");
    let mut others = Vec::new();
    for n in 0..6 {
        others.push(opened(&wire, &format!("203.0.113.{n}:1")).await);
    }
    for other in &others {
        assert!(is_there(other).await);
    }
    let ann = opened(&wire.with("user", "ann"), "198.51.1.1:1").await.with("user", "ann");
    assert!(is_there(&ann).await && is_there(&mine).await);
    assert!(http.sessions() <= 76);
}

#[tokio::test]
async fn a_principal_and_an_address_have_so_many_sessions() {
    let http = server().http().unwrap().max_sessions_per_principal(2).max_sessions_per_address(3);
    let http = principals(http);
    let (nobody, ann) = (Wire::new(&http), Wire::new(&http).with("user", "ann"));
    for (wire, most) in [(nobody, 3), (ann, 2)] {
        let before = http.sessions();
        let sessions = [opened(&wire, "192.0.2.1:1").await, opened(&wire, "192.0.2.1:2").await];
        let mut streams = Vec::new();
        for session in &sessions {
            streams.push(session.get().await);
        }
        for _ in 0..4 {
            handshake(&wire, "192.0.2.1:3").await;
        }
        assert_eq!(http.sessions() - before, most, "one takes the place of another");
        assert!(is_there(&sessions[0]).await && is_there(&sessions[1]).await, "they are in use");
        assert!(handshake(&wire, "192.0.2.9:1").await.1.is_some() || most == 2);
    }
    // Ann uses all she may have.
    let (mut refused, none) = handshake(&Wire::new(&http).with("user", "bob"), "192.0.2.1:1").await;
    assert!(none.is_some(), "bob has none: {:?}", refused.json().await);
}

#[tokio::test]
async fn clients_whose_addresses_are_not_known_share_the_limit_of_one() {
    let http = principals(server().http().unwrap().max_sessions(8).max_sessions_per_address(3));
    let wire = Wire::new(&http);
    let mine = opened(&wire, "192.0.2.1:1").await;
    let (first, second) = (wire.open(R4, json!({})).await, wire.open(R4, json!({})).await);
    let stream = first.get().await;
    let mut last = second.clone();
    for _ in 0..20 {
        last = wire.open(R4, json!({})).await;
    }
    assert_eq!(http.sessions(), 4);
    assert!(is_there(&first).await, "it is in use");
    assert!(is_there(&last).await && !is_there(&second).await);
    // Others have the rest.
    let other = opened(&wire, "192.0.2.2:1").await;
    let ann = wire.with("user", "ann").open(R4, json!({})).await;
    assert!(is_there(&mine).await && is_there(&other).await && is_there(&ann).await);
    // If all are in use, there is none to replace.
    let streams = [stream, last.get().await, wire.open(R4, json!({})).await.get().await];
    assert_eq!(wire.post(initialize()).await.status, 429);
    drop(streams);
    assert_eq!(wire.post(initialize()).await.status, 200);
}

#[tokio::test]
async fn a_principal_at_its_session_limit_gets_a_retry_time() {
    let http = principals(server().http().unwrap().max_sessions_per_principal(1));
    let ann = Wire::new(&http).with("user", "ann");
    let session = opened(&ann, "192.0.2.1:1").await;
    let stream = session.get().await;
    let (mut refused, none) = handshake(&ann, "192.0.2.1:1").await;
    assert!(none.is_none());
    assert_eq!(refused.status, 429);
    assert!(refused.headers.contains_key("retry-after"));
    let message = refused.json().await["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("end a session with DELETE"), "{message}");
    drop(stream);
    assert!(handshake(&ann, "192.0.2.1:1").await.1.is_some());
}

#[tokio::test]
async fn only_a_trusted_proxy_says_where_a_request_came_from() {
    for (trusted, left) in [(None, 2), (Some("10.0.0.0/8"), 4)] {
        let mut http = server().http().unwrap().max_sessions_per_address(2);
        if let Some(trusted) = trusted {
            http = http.trusted_proxies([trusted]).unwrap();
        }
        for n in 0..4 {
            let wire = Wire::new(&http).with("x-forwarded-for", format!("6.6.6.6, 192.0.2.{n}"));
            opened(&wire, "10.0.0.1:1").await;
        }
        assert_eq!(http.sessions(), left);
    }
    let error = server().http().unwrap().trusted_proxies(["10.0.0.0/99"]).unwrap_err();
    assert!(error.to_string().contains("`10.0.0.0/99`"), "{error}");
}

#[tokio::test]
async fn a_client_that_says_too_much_of_itself_gets_no_session() {
    let http = server().http().unwrap();
    let wire = Wire::new(&http);
    let mut message = initialize();
    message["params"]["capabilities"] = json!({"experimental": {"x": vec![[0]; 1 << 20]}});
    let mut refused = wire.post(message).await;
    let error = refused.json().await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(-32602)));
    assert!(error["error"]["message"].as_str().unwrap().contains("send a shorter `initialize`"), "{error}");
    assert!(!refused.headers.contains_key("mcp-session-id"));
    assert_eq!(http.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_client_never_came_back_is_forgotten_soon() {
    let mut timeouts = Timeouts::default();
    timeouts.uninitialized_session = Duration::from_secs(30);
    let http = server().timeouts(timeouts).http().unwrap();
    let wire = Wire::new(&http);
    let mine = opened(&wire, "192.0.2.1:1").await;
    let held = handshake(&wire, "192.0.2.1:1").await.1.unwrap();
    let stream = held.get().await;
    let lazy = handshake(&wire, "192.0.2.1:1").await.1.unwrap();
    handshake(&wire, "192.0.2.1:1").await;
    assert!(is_there(&lazy).await, "a request is as good as the notification");
    assert_eq!(http.sessions(), 4);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(http.sessions(), 3);
    assert!(is_there(&mine).await && is_there(&held).await && is_there(&lazy).await);
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn one_client_does_not_use_up_the_notification_handlers_of_others() {
    let running = Arc::new(AtomicUsize::new(0));
    let mut limits = Limits::default();
    limits.held_bytes = 128 << 20;
    let server = server().limits(limits).on_notification("notifications/wait", {
        let running = running.clone();
        move |_, _| {
            running.fetch_add(1, Ordering::SeqCst);
            std::future::pending()
        }
    });
    let wire = Wire::new(&principals(server.http().unwrap()));
    let wait = json!({"jsonrpc": "2.0", "method": "notifications/wait"});
    let count = async || {
        // The handlers run in tasks.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        running.load(Ordering::SeqCst)
    };
    // One principal, in many sessions; then an address without one; then others.
    let many = 256;
    for n in 0..8 {
        let session = opened(&wire.with("user", "ann"), &format!("192.0.2.{n}:1")).await.with("user", "ann");
        for _ in 0..many / 4 {
            let sent = session.post(wait.clone());
            // A POST of notifications is answered when they are handled.
            let _ = tokio::time::timeout(Duration::from_millis(1), sent).await;
        }
    }
    assert_eq!(count().await, many);
    let session = opened(&wire, "198.51.100.1:1").await;
    let _ = tokio::time::timeout(Duration::from_millis(1), session.post(wait.clone())).await;
    assert_eq!(count().await, many + 1);
    let session = opened(&wire.with("user", "bob"), "192.0.2.1:1").await.with("user", "bob");
    let _ = tokio::time::timeout(Duration::from_millis(1), session.post(wait.clone())).await;
    assert_eq!(count().await, many + 2);
    // The bytes of their params count too.
    let session = opened(&wire.with("user", "joe"), "192.0.2.1:1").await.with("user", "joe");
    let mut long = wait;
    long["params"] = json!({"x": "y".repeat(1 << 20)});
    for _ in 0..8 {
        let _ = tokio::time::timeout(Duration::from_millis(1), session.post(long.clone())).await;
    }
    assert_eq!(count().await, many + 2 + 3);
}

#[tokio::test]
async fn who_watches_most_loses_a_session_for_who_watches_less() {
    let mut limits = Limits::default();
    limits.sessions_bytes = 512 << 10;
    let server = server().resource(resource("note://a", "a", || async { "" })).limits(limits);
    let wire = Wire::new(&principals(server.http().unwrap()));
    let watch = async |session: &Wire, count: i64| {
        for number in 0..count {
            let uri = format!("note://{number}/{}", "x".repeat(2000));
            let watched = session.call(number, "resources/subscribe", json!({"uri": uri})).await;
            assert_eq!(watched.status, 200, "{number}");
            // A session that gives way ends in a task.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
    };
    let mut heavy = Vec::new();
    // These four have nearly all, a quarter each.
    for name in ["ann", "bob", "cat", "dan"] {
        let session = opened(&wire.with("user", name), "192.0.2.1:1").await;
        watch(&session, 62).await;
        heavy.push(session);
    }
    let eve = opened(&wire.with("user", "eve"), "192.0.2.1:1").await;
    watch(&eve, 20).await;
    let mut left = 0;
    for session in &heavy {
        left += usize::from(is_there(session).await);
    }
    assert_eq!(left, 3);
    assert!(is_there(&eve).await);
}
