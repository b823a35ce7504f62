//! When a relay has a stream of the server behind for what belongs to no call: it takes a connection for each session.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use pintle::{
    Server,
    client::http::{self as client_http, Http},
    server::{Cx, Next, around, http as server_http, resource, tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};
use tower_service::Service;

use crate::support::{eras::R4, http_client::Wire};
use crate::world;

/// A server over HTTP, which counts the requests for streams, and may refuse them.
#[derive(Clone)]
struct CountedStreams {
    http: server_http::Http,
    count: Arc<AtomicUsize>,
    refuses: bool,
}

impl Service<Request<client_http::Body>> for CountedStreams {
    type Response = Response<server_http::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<client_http::Body>) -> Self::Future {
        if request.method() == Method::GET {
            self.count.fetch_add(1, Ordering::SeqCst);
            if self.refuses {
                // The server refuses a method that it does not serve.
                *request.method_mut() = Method::PUT;
            }
        }
        Box::pin(self.http.call(request))
    }
}

/// A relay in front of a server with sessions, and the number of streams that it has requested for clients.
async fn relay_to(behind: &Server) -> (Relay, impl Fn() -> usize + use<>) {
    relay_over(CountedStreams { http: behind.http().unwrap(), count: Arc::default(), refuses: false }).await
}

async fn relay_over(counted: CountedStreams) -> (Relay, impl Fn() -> usize + use<>) {
    let count = counted.count.clone();
    let connector = move || {
        let http = Http::new("http://localhost/mcp").unwrap().client(counted.clone());
        async { Ok(http) }
    };
    let relay = Relay::connect(world::client(R4), connector).await.unwrap();
    // The first connection has one for all.
    while count.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    (relay, move || count.load(Ordering::SeqCst) - 1)
}

/// A server whose list of tools grows with each call, and which has a resource.
fn growing() -> Server {
    let server = Server::new("growing", "1.0.0").may_change();
    let (clone, calls) = (server.clone(), AtomicUsize::new(0));
    let grow = move |_: Cx| {
        let name = format!("tool-{}", calls.fetch_add(1, Ordering::SeqCst));
        clone.add_tool(tool(name, |_: Cx| async { "" })).unwrap();
        async { "grown" }
    };
    server.add_tool(tool("grow", grow)).unwrap();
    server.add_tool(tool("still", |_: Cx| async { "nothing happens" })).unwrap();
    server.add_resource(resource("note://1", "note", |_: Cx| async { "text" })).unwrap();
    server
}

async fn grow(client: &Wire, id: i64) -> Value {
    client.call(id, "tools/call", json!({"name": "grow"})).await.result().await
}

#[tokio::test]
async fn a_session_has_a_stream_behind_the_relay_from_when_its_client_has_one() {
    let (relay, streams) = relay_to(&growing()).await;
    let front = relay.into_server();
    let client = Wire::new(&front.http().unwrap()).open(R4, json!({})).await;
    let listed = client.call(1, "tools/list", json!({})).await.result().await;
    assert_eq!(listed["result"]["tools"][0]["name"], "grow", "{listed}");
    assert_eq!(grow(&client, 2).await["result"]["content"][0]["text"], "grown");
    assert_eq!(streams(), 0, "nobody would read it");
    let mut stream = client.get().await;
    // What a call causes arrives, however soon it is made.
    grow(&client, 3).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(streams(), 1);
    // A client that has a stream before its first request misses nothing either.
    let early = Wire::new(&front.http().unwrap()).open(R4, json!({})).await;
    let mut stream = early.get().await;
    grow(&early, 1).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(streams(), 2);
}

#[tokio::test]
async fn a_client_that_opens_a_stream_and_calls_nothing_is_notified_of_changes() {
    let behind = growing();
    let (relay, streams) = relay_to(&behind).await;
    let client = Wire::new(&relay.into_server().http().unwrap()).open(R4, json!({})).await;
    client.call(1, "tools/list", json!({})).await.result().await;
    assert_eq!(streams(), 0);
    let mut stream = client.get().await;
    while streams() == 0 {
        tokio::task::yield_now().await;
    }
    behind.add_tool(tool("new", |_: Cx| async { "" })).unwrap();
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_subscription_has_a_stream_opened() {
    let behind = growing();
    let (relay, streams) = relay_to(&behind).await;
    let client = Wire::new(&relay.into_server().http().unwrap()).open(R4, json!({})).await;
    let subscribed = client.call(1, "resources/subscribe", json!({"uri": "note://1"})).await.result().await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    assert_eq!(streams(), 1);
    behind.resource_updated("note://1");
    let mut stream = client.get().await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/resources/updated");
}

/// Returns a server, and the number of times that its tools were listed.
fn counting_lists() -> (Server, Arc<AtomicUsize>) {
    let lists = Arc::new(AtomicUsize::new(0));
    let counter = lists.clone();
    let server = growing().layer(&around(move |cx: Cx, next: Next| {
        if cx.method() == "tools/list" {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        next.run(cx)
    }));
    (server, lists)
}

/// Rules of a server with several providers judge by the lists, so that they must not be outdated.
#[tokio::test]
async fn lists_that_were_read_without_a_stream_are_read_again_before_they_are_relied_on() {
    let (behind, lists) = counting_lists();
    let (relay, streams) = relay_to(&behind).await;
    let client = Wire::new(&world::front(&relay).http().unwrap()).open(R4, json!({})).await;
    client.call(1, "tools/list", json!({})).await.result().await;
    assert_eq!((streams(), lists.load(Ordering::SeqCst)), (0, 1));
    let called = client.call(2, "tools/call", json!({"name": "still"})).await.result().await;
    assert_eq!(called["result"]["content"][0]["text"], "nothing happens", "{called}");
    assert_eq!((streams(), lists.load(Ordering::SeqCst)), (1, 2), "a change would not have been heard of");
    client.call(3, "tools/call", json!({"name": "still"})).await.result().await;
    assert_eq!((streams(), lists.load(Ordering::SeqCst)), (1, 2));
}

/// A server whose streams are 405 cannot report a change: what it has listed is relied on for a moment.
#[tokio::test(start_paused = true)]
async fn lists_of_a_server_without_a_stream_are_read_again_after_a_second() {
    let (behind, lists) = counting_lists();
    let http = behind.http().unwrap();
    let (relay, _) = relay_over(CountedStreams { http, count: Arc::default(), refuses: true }).await;
    let client = Wire::new(&world::front(&relay).http().unwrap()).open(R4, json!({})).await;
    let call = async |id: i64| {
        let called = client.call(id, "tools/call", json!({"name": "still"})).await.result().await;
        assert_eq!(called["result"]["content"][0]["text"], "nothing happens", "{called}");
        lists.load(Ordering::SeqCst)
    };
    assert_eq!((call(1).await, call(2).await), (1, 1), "it was read a moment ago");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!((call(3).await, call(4).await), (2, 2), "a change would not have been heard of");
}
