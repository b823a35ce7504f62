//! More than the server takes on: refused with one code on every transport, and told when to come back.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use pintle::{
    Server,
    proto::Limits,
    server::{Authenticated, Cx, Next, Outcome, PeerAddress, around, http::Http, tool},
    transport::{Incoming, Stream, Transport, listen_tcp, tcp},
    types::RpcError,
};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::support::{
    eras::{R2, R4, R5},
    http_client::{Answer, Wire},
    line_client::{Raw, modern},
};

const OVERLOADED: i64 = -31503;

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Whether it says what to do, in the head and in the body.
async fn assert_overloaded(mut answer: Answer, status: u16) {
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (status, Some("1")));
    let reply = answer.json().await;
    assert_eq!(reply["error"]["code"], OVERLOADED, "{reply}");
    let mut data = json!({"retryAfterMs": 1000});
    if status == 503 {
        data["unavailable"] = true.into();
    }
    assert_eq!(reply["error"]["data"], data);
}

fn listen(wire: &Wire) -> Request<String> {
    let params = modern(json!({"notifications": {"toolsListChanged": true}}), json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let wire = wire.with("mcp-protocol-version", R5).with("mcp-method", "subscriptions/listen");
    wire.request("POST", "/mcp", body.to_string())
}

fn from_address(mut request: Request<String>, last: u8, port: u16) -> Request<String> {
    request.extensions_mut().insert(PeerAddress(SocketAddr::from(([10, 0, 0, last], port))));
    request
}

/// From a connection of its own, at an address of its own.
fn from(request: Request<String>, number: u8) -> Request<String> {
    from_address(request, number, number.into())
}

#[tokio::test]
async fn anonymous_subscriptions_are_counted_by_connection() {
    let server = Server::new("s", "1").may_change().limits(limits(|limits| limits.subscriptions = 1));
    let http = server.http().unwrap().max_anonymous_subscriptions(2);
    let wire = Wire::new(&http);
    let first = wire.send(from(listen(&wire), 1)).await;
    assert_eq!(first.status, 200);
    assert_overloaded(wire.send(from(listen(&wire), 1)).await, 429).await;
    let second = wire.send(from(listen(&wire), 2)).await;
    assert_eq!(second.status, 200);
    assert_overloaded(wire.send(from(listen(&wire), 3)).await, 503).await;
    let mut named = from(listen(&wire), 3);
    named.extensions_mut().insert(Authenticated::new("ann"));
    assert_eq!(wire.send(named).await.status, 200);
    drop(first);
    assert_eq!(wire.send(from(listen(&wire), 3)).await.status, 200);
}

#[tokio::test]
async fn the_connections_of_one_address_leave_room_for_the_subscriptions_of_others() {
    let server = Server::new("s", "1").may_change().limits(limits(|limits| limits.subscriptions = 1));
    // One address has an eighth of them.
    let http = server.http().unwrap().max_anonymous_subscriptions(16);
    let wire = Wire::new(&http);
    let mut open = Vec::new();
    for address in 1..=3 {
        for port in 1..=2 {
            let answer = wire.send(from_address(listen(&wire), address, port)).await;
            assert_eq!(answer.status, 200, "{address}:{port}");
            open.push(answer);
        }
        assert_overloaded(wire.send(from_address(listen(&wire), address, 3)).await, 429).await;
    }
    let mut named = from_address(listen(&wire), 1, 3);
    named.extensions_mut().insert(Authenticated::new("ann"));
    assert_eq!(wire.send(named).await.status, 200);
    open.remove(0);
    assert_eq!(wire.send(from_address(listen(&wire), 1, 3)).await.status, 200);
}

#[tokio::test]
async fn of_anonymous_subscriptions_the_network_that_has_most_gives_way() {
    let server = Server::new("s", "1").may_change().limits(limits(|limits| limits.subscriptions = 1));
    let http = server.http().unwrap().max_anonymous_subscriptions(16);
    let wire = Wire::new(&http);
    let from = |network: u8, last: u8, port: u16| {
        let mut request = listen(&wire);
        request.extensions_mut().insert(PeerAddress(SocketAddr::from(([10, 0, network, last], port))));
        wire.send(request)
    };
    let mut open = Vec::new();
    // Of the first network there are six, of the others two.
    for (network, last) in [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)] {
        for port in 1..=2 {
            let mut answer = from(network, last, port).await;
            assert_eq!(answer.status, 200, "{network}.{last}:{port}");
            answer.message().await;
            open.push(((network, last, port), answer));
        }
    }
    // Its newest ends, and so on until all have as many.
    for (number, ended) in [(7, (1, 3, 2)), (8, (1, 2, 2)), (9, (1, 1, 2)), (10, (1, 3, 1))] {
        let mut newcomer = from(number, 1, 1).await;
        assert_eq!(newcomer.status, 200, "{number}");
        newcomer.message().await;
        let at = open.iter().position(|(from, _)| *from == ended).unwrap();
        let (_, mut answer) = open.remove(at);
        let last = answer.message().await.expect("the result of the subscription");
        assert!(last["result"].is_object() && answer.message().await.is_none(), "{last}");
        open.push(((number, 1, 1), newcomer));
    }
    // Two are not more than what a network would have with one more.
    assert_overloaded(from(7, 1, 2).await, 503).await;
    // All the others are open.
    assert_eq!(open.len(), 16);
    server.add_tool(tool("new", || async { "" })).unwrap();
    for (from, answer) in &mut open {
        let changed = answer.message().await.unwrap();
        assert_eq!(changed["method"], "notifications/tools/list_changed", "{from:?}");
    }
}

#[tokio::test]
async fn of_one_network_the_address_that_has_most_gives_way() {
    let server = Server::new("s", "1").may_change().limits(limits(|limits| limits.subscriptions = 1));
    let http = server.http().unwrap().max_anonymous_subscriptions(16);
    let wire = Wire::new(&http);
    let mut open = Vec::new();
    for address in 1..=8 {
        for port in 1..=2 {
            open.push(wire.send(from_address(listen(&wire), address, port)).await);
        }
    }
    assert!(open.iter().all(|answer| answer.status == 200));
    let newcomer = wire.send(from_address(listen(&wire), 9, 1)).await;
    assert_eq!(newcomer.status, 200);
    assert_overloaded(wire.send(from_address(listen(&wire), 9, 2)).await, 503).await;
    // The one that has given way is counted once.
    drop((open, newcomer));
    let mut open = Vec::new();
    for address in 1..=8 {
        for port in 1..=2 {
            open.push(wire.send(from_address(listen(&wire), address, port)).await);
        }
    }
    assert!(open.iter().all(|answer| answer.status == 200));
}

#[tokio::test]
async fn connections_without_an_address_share_only_the_total_limit() {
    let server = Server::new("s", "1").may_change().limits(limits(|limits| limits.subscriptions = 1));
    let http = server.http().unwrap().max_anonymous_subscriptions(2);
    let wire = Wire::new(&http);
    let open = [wire.send(listen(&wire)).await, wire.send(listen(&wire)).await];
    assert!(open.iter().all(|answer| answer.status == 200));
    assert_overloaded(wire.send(listen(&wire)).await, 503).await;
}

fn waiting() -> Server {
    Server::new("s", "1")
        .tool(tool("wait", std::future::pending::<String>))
        .limits(limits(|limits| limits.in_flight = 1))
}

#[tokio::test]
async fn too_many_requests_at_a_time_are_refused_alike_on_every_transport() {
    let mut raw = Raw::new(&waiting());
    raw.open(R4, json!({})).await;
    let wait =
        |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "wait"}});
    raw.send(wait(1)).await;
    raw.send(wait(2)).await;
    let reply = raw.recv().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(2), &json!(OVERLOADED)), "{reply}");
    assert_eq!(reply["error"]["data"], json!({"retryAfterMs": 1000}));

    let http = waiting().http().unwrap();
    let wire = Wire::new(&http).open(R4, json!({})).await;
    let running = tokio::spawn({
        let wire = wire.clone();
        async move { wire.post(wait(1)).await.status }
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_overloaded(wire.post(wait(2)).await, 429).await;
    running.abort();
}

/// A layer that allows two calls of tools.
fn limited() -> Server {
    let calls = Arc::new(AtomicU32::new(0));
    let limit = move |cx: Cx, next: Next| {
        let counted = cx.target().map(|_| calls.fetch_add(1, Ordering::Relaxed));
        async move {
            match counted {
                Some(2..) => {
                    Outcome::Failed(RpcError::overloaded("2 calls a minute are allowed: wait", 29_001))
                }
                _ => next.run(cx).await,
            }
        }
    };
    Server::new("s", "1").tool(tool("t", || async { "done" })).layer(&around(limit))
}

#[tokio::test]
async fn a_layer_that_limits_rates_has_its_own_wait_on_every_transport() {
    let params = json!({"name": "t"});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    for era in [R4, R5] {
        let plain = Wire::new(&limited().http().unwrap());
        let wire = if era == R4 { plain.open(R4, json!({})).await } else { plain };
        for n in 0..3 {
            let mut answer = match era {
                R4 => wire.post(call.clone()).await,
                _ => wire.modern(7, "tools/call", params.clone(), json!({})).await,
            };
            let (status, wait) = (answer.status.as_u16(), answer.header("retry-after").map(str::to_owned));
            let reply = answer.json().await;
            assert_eq!(reply["id"], 7);
            if n < 2 {
                assert_eq!((status, wait), (200, None), "{era}");
                continue;
            }
            assert_eq!((status, wait.as_deref()), (429, Some("30")), "{era}");
            assert_eq!(reply["error"]["code"], OVERLOADED, "{reply}");
            assert_eq!(reply["error"]["data"], json!({"retryAfterMs": 29_001}));
        }
    }
    let mut raw = Raw::new(&limited());
    raw.open(R4, json!({})).await;
    for _ in 0..3 {
        raw.send(call.clone()).await;
    }
    let last = [raw.recv().await, raw.recv().await, raw.recv().await];
    let refused = last.iter().find(|answer| answer["error"].is_object()).unwrap();
    let error: RpcError = serde_json::from_value(refused["error"].clone()).unwrap();
    assert_eq!((error.code.0, error.retry_after_ms()), (-31503, Some(29_001)));
}

#[tokio::test]
async fn a_batch_with_a_refused_call_is_200() {
    let wire = Wire::new(&limited().http().unwrap()).open(R2, json!({})).await;
    let call = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}});
    let mut answer = wire.post(json!([call(1), call(2), call(3)])).await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (200, None));
    assert_eq!(answer.json().await.as_array().unwrap().len(), 3);
}

/// A body of several pieces, of which the last comes never.
struct Unfinished(VecDeque<Bytes>);

impl http_body::Body for Unfinished {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.pop_front().map_or(Poll::Pending, |piece| Poll::Ready(Some(Ok(Frame::data(piece)))))
    }
}

#[tokio::test]
async fn bodies_that_are_still_coming_share_a_budget() {
    let http = waiting().http().unwrap().max_bytes_in_transit(100_000);
    let wire = Wire::new(&http);
    let send_from = |address: Option<u8>, bytes: usize| {
        let request = wire.request("POST", "/mcp", "");
        let request = address.into_iter().fold(request, from);
        http.clone().call(request.map(|_| Unfinished([vec![b' '; bytes].into()].into())))
    };
    let send = |bytes| send_from(None, bytes);
    let mut first = send(60_000);
    assert!(pending(&mut first).await);
    assert_overloaded(Answer::new(send(60_000).await.unwrap()), 503).await;
    let mut third = send(20_000);
    assert!(pending(&mut third).await, "there is room for it");
    drop((first, third));
    let mut again = send(79_000);
    assert!(pending(&mut again).await, "what was given up is free, but for the last quarter");
    let mut small = send(4_000);
    assert!(pending(&mut small).await, "what is short is not counted");
    drop(again);
    // One address has a quarter.
    let mut mine = send_from(Some(1), 20_000);
    assert!(pending(&mut mine).await);
    assert_overloaded(Answer::new(send_from(Some(1), 20_000).await.unwrap()), 429).await;
    let mut other = send_from(Some(2), 20_000);
    assert!(pending(&mut other).await);
    // What comes at once is not counted.
    let ping = wire.modern(1, "tools/list", json!({}), json!({})).await;
    assert_eq!(ping.status, 200);
}

async fn pending<F: Future + Unpin>(future: &mut F) -> bool {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await
}

/// A call with long arguments that never ends, from this address.
fn long_call(http: &Http, address: u8) -> Pin<Box<dyn Future<Output = Answer>>> {
    let peer = SocketAddr::from(([10, 0, address, 1], 1));
    let wire = Wire { peer: Some(peer), ..Wire::new(http) };
    let params = json!({"name": "wait", "arguments": {"x": "y".repeat(60_000)}});
    Box::pin(async move { wire.modern(1, "tools/call", params, json!({})).await })
}

#[tokio::test]
async fn calls_that_run_are_bounded_in_bytes_and_who_holds_most_gives_way() {
    let server = Server::new("s", "1")
        .tool(tool("wait", std::future::pending::<String>))
        .limits(limits(|limits| limits.held_bytes = 1 << 20));
    let http = server.http().unwrap();
    let mut running = Vec::new();
    for address in 1..=3 {
        for _ in 0..4 {
            let mut call = long_call(&http, address);
            assert!(pending(&mut call).await, "{address}");
            running.push(call);
        }
        assert_overloaded(long_call(&http, address).await, 429).await;
    }
    // All without a principal have three quarters, and these three have them.
    let mut calls = Vec::new();
    for address in 4..=6 {
        let mut call = long_call(&http, address);
        assert!(pending(&mut call).await, "{address}");
        calls.push(call);
    }
    let mut ended = Vec::new();
    for call in &mut running {
        if let Poll::Ready(mut answer) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            ended.push(answer.json().await["error"].clone());
        }
    }
    assert!(!ended.is_empty() && ended.len() <= 3, "{ended:?}");
    for error in ended {
        assert_eq!(error["code"], -32603, "{error}");
        assert!(error["message"].as_str().unwrap().contains("holds most"), "{error}");
    }
    for call in &mut calls {
        assert!(pending(call).await);
    }
}

/// A service that holds little of its clients.
fn narrow() -> Http {
    let narrow = limits(|limits| (limits.held_bytes, limits.sessions_bytes) = (1 << 20, 1 << 20));
    let server = Server::new("s", "1").tool(tool("wait", std::future::pending::<String>)).limits(narrow);
    server.http().unwrap()
}

/// A client at its own limit, and one that has none: of those whose addresses are not known, nobody knows how many they are.
const LIMITED: [(Option<[u8; 4]>, u16); 2] = [(Some([10, 0, 0, 1]), 429), (None, 503)];

#[tokio::test]
async fn a_call_is_refused_with_429_at_the_limit_of_its_client_and_503_at_that_of_all() {
    for (peer, status) in LIMITED {
        let peer = peer.map(|peer| SocketAddr::from((peer, 1)));
        for era in [R4, R5] {
            let plain = Wire { peer, ..Wire::new(&narrow()) };
            let wire = if era == R4 { plain.open(R4, json!({})).await } else { plain };
            let mut running = Vec::new();
            let refused = loop {
                let (wire, id) = (wire.clone(), running.len() as i64 + 1);
                let mut call = Box::pin(async move {
                    let params = json!({"name": "wait", "arguments": {"x": "y".repeat(60_000)}});
                    match era {
                        R4 => wire.call(id, "tools/call", params).await,
                        _ => wire.modern(id, "tools/call", params, json!({})).await,
                    }
                });
                match poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
                    Poll::Pending => running.push(call),
                    Poll::Ready(answer) => break answer,
                }
            };
            assert_eq!(running.len() == 4, status == 429, "{era}: {}", running.len());
            assert_overloaded(refused, status).await;
        }
    }
}

#[tokio::test]
async fn a_session_is_refused_with_429_at_the_limit_of_its_client_and_503_at_that_of_all() {
    for (peer, status) in LIMITED {
        let wire = Wire { peer: peer.map(|peer| SocketAddr::from((peer, 1))), ..Wire::new(&narrow()) };
        let about = json!({"experimental": {"x": {"y": "z".repeat(100_000)}}});
        let params = json!({"protocolVersion": R4, "capabilities": about, "clientInfo": {"name": "c", "version": "1"}});
        let mut sessions = 0;
        let mut refused = loop {
            let answer = wire.call(1, "initialize", params.clone()).await;
            if answer.status != 200 {
                break answer;
            }
            sessions += 1;
            assert!(sessions < 20, "there is no limit");
        };
        assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (status, Some("5")));
        assert_eq!(refused.json().await["error"]["code"], OVERLOADED);
    }
}

fn small(bytes: usize) -> Server {
    Server::new("s", "1")
        .tool(tool("greet", || async { "Hello!" }))
        .limits(limits(|limits| limits.message_bytes = bytes))
}

fn list(bytes: usize) -> String {
    let params = modern(json!({}), json!({}));
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string();
    format!("{text}{}", " ".repeat(bytes.saturating_sub(text.len())))
}

async fn asked(wire: &mut impl Transport, text: String) -> Value {
    wire.send(text.into());
    poll_fn(|cx| wire.poll_flush(cx)).await.unwrap();
    match poll_fn(|cx| wire.poll_recv(cx)).await.unwrap() {
        Some(Incoming::Message(bytes)) => serde_json::from_slice(&bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_limit_of_a_message_holds_on_every_transport() {
    // Smaller than the usual one, and larger.
    for limit in [1000, 17 << 20] {
        let server = small(limit);
        let mut listener = listen_tcp("127.0.0.1:0").await.unwrap();
        let mut socket = tcp(listener.address().unwrap()).await.unwrap();
        drop(server.serve(listener.accept().await.unwrap()).unwrap());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let ((r, w), (r2, w2)) = (tokio::io::split(ours), tokio::io::split(theirs));
        drop(server.serve(Stream::new(r, w)).unwrap());
        let mut stream = Stream::new(r2, w2);
        let mut memory = server.in_process().unwrap();
        let wires: [&mut dyn AnyWire; 3] = [&mut socket, &mut stream, &mut memory];
        for wire in wires {
            let fine = wire.ask(list(limit)).await;
            assert!(fine.get("result").is_some(), "{limit}: {fine}");
            let long = wire.ask(list(limit + 1)).await;
            assert_eq!(long["error"]["code"], -32600, "{limit}: {long}");
        }
        // Over HTTP, whichever server is chosen.
        let chosen = server.clone();
        let http = Server::new("other", "1").http().unwrap().choose(move |_| chosen.clone());
        let wire = Wire::new(&http).with("mcp-protocol-version", R5).with("mcp-method", "tools/list");
        let send = |bytes: usize| wire.send(wire.request("POST", "/mcp", list(bytes)));
        assert_eq!(send(limit).await.status, 200, "{limit}");
        assert_eq!(send(limit + 1).await.status, 413, "{limit}");
        let (head, body) = wire.request("POST", "/mcp", list(limit + 1)).into_parts();
        assert_eq!(http.answer(head, body.into()).await.status(), 413, "{limit}");
    }
}

trait AnyWire {
    fn ask(&mut self, text: String) -> Pin<Box<dyn Future<Output = Value> + '_>>;
}

impl<T: Transport> AnyWire for T {
    fn ask(&mut self, text: String) -> Pin<Box<dyn Future<Output = Value> + '_>> {
        Box::pin(asked(self, text))
    }
}
