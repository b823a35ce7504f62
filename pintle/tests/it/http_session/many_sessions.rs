//! Many at once: sessions, clients of one session, changes nobody reads.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pintle::{
    Server,
    server::{Arguments, resource, tool},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{
    eras::{HTTP_SESSIONS, R1, R4},
    http_client::{Answer, Wire},
    http_server::{World, wait_for},
    http_socket::{Hands, Speaker, request},
};

#[tokio::test]
async fn ten_thousand_idle_sessions_then_all_call_at_once() {
    const SESSIONS: usize = 10_000;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let go = Arc::new(Semaphore::new(0));
    let (counts, gate) = ((running.clone(), most.clone()), go.clone());
    let server = Server::new("s", "0").tool(tool("own", move |Arguments(arguments): Arguments| {
        let (counts, gate) = (counts.clone(), gate.clone());
        async move {
            let n: u64 = arguments.decode_member("n").unwrap().unwrap();
            counts.1.fetch_max(counts.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
            counts.0.fetch_sub(1, Ordering::SeqCst);
            n.to_string()
        }
    }));
    let http = server.http().unwrap();
    let mut clients = Vec::new();
    for n in 0..SESSIONS {
        clients.push(Wire::new(&http).open(HTTP_SESSIONS[n % 3], json!({})).await);
    }
    assert_eq!(http.sessions(), SESSIONS);
    let calls: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(n, client)| {
            let client = client.clone();
            tokio::spawn(async move {
                let params = json!({"name": "own", "arguments": {"n": n}});
                // All of them with the same id: it is theirs, in their session.
                let answer = client.call(1, "tools/call", params).await.result().await;
                assert_eq!(answer["result"]["content"][0]["text"], n.to_string());
            })
        })
        .collect();
    wait_for(|| running.load(Ordering::SeqCst) == SESSIONS).await;
    go.add_permits(SESSIONS);
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), SESSIONS);
    for client in &clients {
        assert_eq!(client.delete().await.status, 204);
    }
    assert_eq!(http.sessions(), 0);
}

#[tokio::test]
async fn two_clients_on_one_session() {
    let world = World::new();
    let serving = world.serve().await;
    let one = Speaker::open(serving.address(), R4).await;
    let two = Speaker { address: one.address, revision: R4, session: one.session.clone(), stream: None };

    // Ids of their own: each is answered on its own connection, with what it asked for.
    let (mut first, mut second) =
        (one.begin(&one.call(1, "hold", "one")).await, two.begin(&two.call(2, "hold", "two")).await);
    first.event("\"one\"").await;
    second.event("\"two\"").await;
    world.hold.add_permits(2);
    for (hands, mark) in [(&mut first, "one"), (&mut second, "two")] {
        let end = hands.event("\"result\"").await;
        assert!(end.contains(&format!("\"text\":\"{mark}\"")), "{end}");
    }

    // The same id at the same time: in one session it means one request, and nobody is given another's answer.
    let mut first = one.begin(&one.call(3, "hold", "three")).await;
    first.event("\"three\"").await;
    let refused = two.post(&two.call(3, "hold", "four")).await;
    assert_eq!(refused.json()["error"]["code"], -32600, "{refused:?}");
    world.hold.add_permits(1);
    assert!(first.event("\"result\"").await.contains("\"text\":\"three\""));
    assert_eq!(*world.called.lock().unwrap(), ["one", "two", "three"]);

    // Who ends it ends it for both.
    assert_eq!(two.delete().await.status, 204);
    assert_eq!(one.post(&one.call(4, "echo", "late")).await.status, 404);
    world.empty().await;
}

#[tokio::test]
async fn a_stolen_session_is_unknown_on_a_socket_too() {
    let world = World::new();
    let http =
        world.http.clone().principal(|head| Some(head.headers.get("x-user")?.to_str().ok()?.to_owned()));
    let serving = http.clone().serve(tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
    let address = serving.address();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "ann", "version": "0"}}});
    let opened = Hands::ask(address, &request("POST /mcp", &[("x-user", "ann")], &hello.to_string())).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let nobodys = "0".repeat(32);
    for user in [("x-user", "bob"), ("x-nobody", "")] {
        for (line, body) in [("POST /mcp", &*ping), ("GET /mcp", ""), ("DELETE /mcp", "")] {
            let ask = async |session: &str| {
                Hands::ask(address, &request(line, &[user, ("mcp-session-id", session)], body)).await
            };
            let (stolen, unknown) = (ask(&session).await, ask(&nobodys).await);
            assert_eq!((stolen.status, stolen.body), (404, unknown.body), "{line}: as if there were none");
        }
    }
    let fields = [("x-user", "ann"), ("mcp-session-id", &*session)];
    assert_eq!(Hands::ask(address, &request("POST /mcp", &fields, &ping)).await.status, 200);

    // The two endpoints are no way around.
    let mut stream = Hands::connect(address).await;
    stream.write(&request("GET /sse", &[("x-user", "ann")], "")).await;
    stream.until("data: ").await;
    let target = stream.until("\n").await;
    let line = format!("POST {}", target.trim_end());
    assert_eq!(Hands::ask(address, &request(&line, &[("x-user", "bob")], &ping)).await.status, 404);
    assert_eq!(Hands::ask(address, &request(&line, &[("x-user", "ann")], &ping)).await.status, 202);
}

/// Opens a stream for changes as clients of this revision do.
async fn listens(wire: &Wire, revision: &str, uri: &str) -> (Wire, Answer) {
    if revision == R1 {
        let mut stream = wire.send(wire.request("GET", "/sse", "")).await;
        let target = stream.event().await.unwrap().data;
        let params =
            json!({"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
        let subscribe = json!({"uri": uri});
        for (id, method, params) in [(0, "initialize", params), (1, "resources/subscribe", subscribe)] {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            assert_eq!(wire.send(wire.request("POST", &target, message.to_string())).await.status, 202);
            assert!(stream.message().await.unwrap()["result"].is_object());
        }
        return (wire.clone(), stream);
    }
    if HTTP_SESSIONS.contains(&revision) {
        let client = wire.open(revision, json!({})).await;
        assert_eq!(client.call(1, "resources/subscribe", json!({"uri": uri})).await.status, 200);
        let stream = client.get().await;
        return (client, stream);
    }
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [uri]}});
    let mut stream = wire.modern(9, "subscriptions/listen", wanted, json!({})).await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    (wire.clone(), stream)
}

#[tokio::test]
async fn ten_thousand_changes_that_nobody_reads_are_the_newest_two() {
    for revision in crate::support::eras::ALL {
        let server = Server::new("s", "0").tool(tool("t", || async { "" })).resource(resource(
            "note://1",
            "one",
            || async { "" },
        ));
        let http = server.http().unwrap().two_endpoints("/sse", "/messages");
        let (_client, mut stream) = listens(&Wire::new(&http), revision, "note://1").await;
        for n in 0..10_000 {
            server.resource_updated("note://1");
            if n % 2 == 0 {
                server.add_tool(tool("new", || async { "" })).unwrap();
            } else {
                server.remove_tool("new");
            }
        }
        let mut received = HashSet::new();
        for _ in 0..2 {
            received.insert(stream.message().await.unwrap()["method"].as_str().unwrap().to_owned());
        }
        let expected = ["notifications/resources/updated", "notifications/tools/list_changed"];
        assert_eq!(received, expected.map(str::to_owned).into(), "{revision}");
        // There is nothing more: the next thing that comes is the next thing that happens.
        server.add_tool(tool("last", || async { "" })).unwrap();
        assert_eq!(
            stream.message().await.unwrap()["method"],
            "notifications/tools/list_changed",
            "{revision}"
        );
        http.close_streams();
        let rest: Vec<Value> = stream.messages().await;
        assert!(rest.iter().all(|message| message.get("result").is_some()), "{revision}: {rest:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_sleeps_holds_up_nobody_and_finds_the_newest_state() {
    let world = World::new();
    let version = Arc::new(AtomicUsize::new(0));
    let newest = version.clone();
    world
        .server
        .add_resource(resource("count://1", "count", move || {
            let newest = newest.clone();
            async move { newest.load(Ordering::SeqCst).to_string() }
        }))
        .unwrap();
    let serving = world.serve().await;
    let speaker = Speaker::open(serving.address(), R4).await;
    let wish =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "count://1"}});
    assert_eq!(speaker.post(&wish).await.status, 200);
    let mut asleep = speaker.listen().await;
    asleep.until("\r\n\r\n").await;
    let awake = Speaker::open(serving.address(), R4).await;
    for n in 1..=10_000 {
        version.store(n, Ordering::SeqCst);
        world.server.resource_updated("count://1");
        if n % 1000 == 0 {
            assert_eq!(awake.post(&awake.call(n as i64, "echo", "hi")).await.status, 200);
        }
    }
    // It wakes up, and looks when it is told to: the last look shows the newest.
    let read = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "count://1"}});
    loop {
        asleep.event("notifications/resources/updated").await;
        let state = speaker.post(&read).await.json();
        if state["result"]["contents"][0]["text"] == "10000" {
            break;
        }
    }
}

#[tokio::test]
async fn a_session_without_a_stream_is_notified_later_of_its_subscriptions_only() {
    let server = Server::new("s", "0").tool(tool("t", || async { "" })).resource(resource(
        "note://1",
        "one",
        || async { "" },
    ));
    let http = server.http().unwrap();
    let client = Wire::new(&http).open(R4, json!({})).await;
    for uri in ["note://1", "note://2"] {
        assert_eq!(client.call(1, "resources/subscribe", json!({"uri": uri})).await.status, 200);
    }
    // Nothing that is watched has changed, so nothing is told but the list.
    for n in 3..10_000 {
        server.resource_updated(format!("note://{n}"));
    }
    server.add_tool(tool("new", || async { "" })).unwrap();
    let mut stream = client.get().await;
    assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
    // What is watched from now on is heard of at once.
    assert_eq!(client.call(2, "resources/subscribe", json!({"uri": "note://3"})).await.status, 200);
    server.resource_updated("note://3");
    assert_eq!(stream.message().await.unwrap()["params"]["uri"], "note://3");
    drop(stream);
    for _ in 0..10 {
        server.resource_updated("note://2/part");
        server.resource_updated("note://4");
    }
    // While nobody read, something that is watched has changed: all that is may have.
    let mut stream = client.get().await;
    for uri in ["note://1", "note://2", "note://3"] {
        assert_eq!(stream.message().await.unwrap()["params"]["uri"], uri);
    }
    server.resource_updated("note://1");
    assert_eq!(stream.message().await.unwrap()["params"]["uri"], "note://1");
}
