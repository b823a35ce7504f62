//! Every transport logs what it carries.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Client, Connection, Server,
    client::{Mode, Reconnect, http::Http},
    message_log::MessageLog,
    server::{
        Cx, TlsFacts,
        http::{HttpServer, TlsSocket},
        tool,
    },
    transport::{listen_tcp, listen_unix, tcp, unix},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Records = Arc<Mutex<Vec<Value>>>;

pub(super) fn collected() -> (MessageLog, Records) {
    let records = Records::default();
    let log = MessageLog::new({
        let records = records.clone();
        move |record| records.lock().unwrap().push(serde_json::from_str(&record.to_json()).unwrap())
    });
    (log, records)
}

fn server() -> Server {
    Server::new("s", "1")
        .tool(tool("facts", |cx: Cx| async move {
            let tls = cx.tls().and_then(|tls| tls.server_name.clone());
            let local = cx.peer_address().map(|address| address.ip().is_loopback());
            json!([cx.transport().to_string(), local, tls]).to_string()
        }))
        .tool(tool("steps", |cx: Cx| async move {
            cx.progress_with(1.0, 2.0, "first").await;
            "done"
        }))
}

async fn facts(connection: &Connection) -> Value {
    serde_json::from_str(&connection.call_tool("facts", ()).await.unwrap().text()).unwrap()
}

fn client(mode: Mode) -> Client {
    Client::new("c", "1").mode(mode)
}

/// The records of a method, as `direction transport`.
fn of(records: &Records, method: &str) -> Vec<String> {
    let records = records.lock().unwrap();
    let of = records.iter().filter(|record| record["message"]["method"] == method);
    of.map(|record| {
        format!("{} {}", record["direction"].as_str().unwrap(), record["transport"].as_str().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn every_stream_transport_logs_both_sides_and_handlers_know_it() {
    let directory = std::env::temp_dir().join(format!("pintle-message-log-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for mode in [Mode::Modern, Mode::Legacy] {
        let ((server_log, at_server), (client_log, at_client)) = (collected(), collected());
        let server = server().message_log(server_log);
        let client = client(mode).message_log(client_log);
        let check = async |connection: Connection, kind: &str, address: Option<bool>| {
            assert_eq!(facts(&connection).await, json!([kind, address, null]));
            assert_eq!(of(&at_server, "tools/call"), [format!("in {kind}")]);
            assert_eq!(of(&at_client, "tools/call"), [format!("out {kind}")]);
            let answered = |records: &Records, direction: &str| {
                let records = records.lock().unwrap();
                let last =
                    records.iter().rfind(|record| !record["message"]["result"]["content"].is_null()).unwrap();
                assert_eq!(last["direction"], direction);
                last["peer"].is_string()
            };
            assert_eq!(answered(&at_server, "out"), address.is_some());
            assert_eq!(answered(&at_client, "in"), address.is_some());
            connection.close().await;
            at_server.lock().unwrap().clear();
            at_client.lock().unwrap().clear();
        };
        check(client.connect(server.in_process().unwrap()).await.unwrap(), "memory", None).await;

        let mut listener = listen_tcp("127.0.0.1:0").await.unwrap();
        let theirs = tcp(listener.address().unwrap()).await.unwrap();
        let serving = server.serve(listener.accept().await.unwrap()).unwrap();
        check(client.connect(theirs).await.unwrap(), "tcp", Some(true)).await;
        drop(serving);

        let mut listener = listen_unix(directory.join("socket")).unwrap();
        let theirs = unix(directory.join("socket")).await.unwrap();
        let serving = server.serve(listener.accept().await.unwrap()).unwrap();
        check(client.connect(theirs).await.unwrap(), "unix", None).await;
        drop(serving);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn http_logs_heads_bodies_events_and_streams_on_both_sides() {
    for mode in [Mode::Modern, Mode::Legacy] {
        let ((server_log, at_server), (client_log, at_client)) = (collected(), collected());
        let serving = server().message_log(server_log).serve_http("127.0.0.1:0").await.unwrap();
        let transport = Http::new(format!("http://{}/mcp", serving.address())).unwrap();
        let connection = client(mode).message_log(client_log).connect(transport).await.unwrap();
        assert_eq!(facts(&connection).await, json!(["http", true, null]));
        let steps = connection.call("steps").on_progress(|_| {}).send().await.unwrap();
        assert_eq!(steps.text(), "done");
        connection.close().await;
        let _ = serving.shutdown(Duration::ZERO).await;

        for (records, request, response) in [(&at_server, "in", "out"), (&at_client, "out", "in")] {
            let records = records.lock().unwrap();
            let calls: Vec<_> =
                records.iter().filter(|record| record["message"]["method"] == "tools/call").collect();
            assert_eq!(calls.len(), 2, "{mode:?} {records:?}");
            for call in &calls {
                assert_eq!(call["direction"], request);
                assert_eq!(call["http"]["method"], "POST");
                let headers = call["http"]["headers"].as_array().unwrap();
                assert!(headers.iter().any(|header| header[0] == "mcp-protocol-version"), "{headers:?}");
            }
            let exchange = |n: usize| {
                let number = &calls[n]["http"]["exchange"];
                let same = |record: &&Value| {
                    record["http"]["exchange"] == *number && record["direction"] == response
                };
                records.iter().filter(same).collect::<Vec<_>>()
            };
            // One answer as JSON.
            let [answer] = exchange(0)[..] else { panic!("{records:?}") };
            assert_eq!(answer["http"]["status"], 200);
            assert!(answer["message"]["result"].is_object() && answer["http"]["event"].is_null(), "{answer}");
            // The head of a stream, and its two events.
            let [head, progress, answer] = exchange(1)[..] else { panic!("{records:?}") };
            assert!(head["http"]["headers"].is_array() && head["message"].is_null(), "{head}");
            assert_eq!(progress["message"]["method"], "notifications/progress");
            assert_eq!((&progress["http"]["event"], &answer["http"]["event"]), (&json!(true), &json!(true)));
            assert_eq!(answer["message"]["result"]["content"][0]["text"], "done");

            let sessions: Vec<_> = records.iter().filter_map(|record| record["session"].as_str()).collect();
            match mode {
                Mode::Modern => assert!(sessions.is_empty()),
                // One session, the stream of which was opened, and which was ended.
                _ => {
                    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
                    assert!(sessions[0].starts_with("<redacted:"), "{sessions:?}");
                    for method in ["GET", "DELETE"] {
                        let of = |direction: &str| {
                            records.iter().any(|record| {
                                record["http"]["method"] == method && record["direction"] == direction
                            })
                        };
                        assert!(of(request) && of(response), "{method} {records:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_is_refused_is_logged_with_its_reason() {
    let (log, records) = collected();
    let http = server().message_log(log).http().unwrap();
    let head = |method: &str| {
        let request = http::Request::builder().method(method).uri("/mcp").header("host", "example.com");
        request.body(()).unwrap().into_parts().0
    };
    let body = bytes::Bytes::from_static(b"{}");
    assert_eq!(http.answer(head("POST"), body.clone()).await.status(), 403);
    assert_eq!(http.answer(head("PATCH"), body).await.status(), 403);
    let records = records.lock().unwrap();
    let shown: Vec<_> = records
        .iter()
        .map(|record| (record["http"]["method"].as_str().unwrap(), record["http"]["status"].as_u64()))
        .collect();
    assert_eq!(shown, [("POST", None), ("POST", Some(403)), ("PATCH", None), ("PATCH", Some(403))]);
    assert!(records[1]["message"]["error"]["message"].as_str().unwrap().contains("example.com"));
}

#[tokio::test]
async fn the_facts_of_tls_reach_the_handler() {
    for own_service in [true, false] {
        let http = server().http().unwrap();
        let accept = |socket| async move {
            Ok(TlsSocket::new(socket, TlsFacts::new().version("TLSv1.3").server_name("example.com")))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let serving = match own_service {
            true => HttpServer::new(http).tls(accept).serve(listener).unwrap(),
            false => HttpServer::new(axum::Router::new().route_service("/mcp", http))
                .tls(accept)
                .serve(listener)
                .unwrap(),
        };
        let transport = Http::new(format!("http://{}/mcp", serving.address())).unwrap();
        let connection = client(Mode::Modern).connect(transport).await.unwrap();
        assert_eq!(facts(&connection).await, json!(["http", true, "example.com"]));
        connection.close().await;
        let _ = serving.shutdown(Duration::ZERO).await;
    }
}

/// Both ends of a pipe; nothing prints the environment of the child.
#[cfg(all(feature = "child", feature = "stdio"))]
#[tokio::test]
async fn standard_streams_are_logged_on_both_sides() {
    use pintle::transport::Stderr;

    let path = std::env::temp_dir().join(format!("pintle-message-log-stdio-{}", std::process::id()));
    let (log, at_client) = collected();
    let command = crate::support::child_servers::command(&format!("log {}", path.display()))
        .env("SECRET", "canary-environment")
        .stderr(Stderr::lines(|_| {}));
    let mut printed = format!("{command:?}");
    let child = command.spawn().unwrap();
    printed += &format!("{child:?}");
    let connection = Client::new("c", "1").message_log(log).connect(child).await.unwrap();
    assert_eq!(connection.call_tool("transport", ()).await.unwrap().text(), "stdio");
    printed += &format!("{connection:?}");
    connection.close().await;
    assert_eq!(of(&at_client, "tools/call"), ["out child"]);
    printed += &serde_json::to_string(&*at_client.lock().unwrap()).unwrap();
    // The child has closed the file when it has ended.
    let file = std::fs::read_to_string(&path).unwrap();
    let at_server = Records::default();
    at_server.lock().unwrap().extend(file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    assert_eq!(of(&at_server, "tools/call"), ["in stdio"]);
    assert!(!printed.contains("canary") && !file.contains("canary"), "{printed} {file}");
    std::fs::remove_file(path).unwrap();
}

/// A transport that connects again logs what its connections know: over HTTP, heads and exchanges.
#[tokio::test]
async fn a_transport_that_connects_again_logs_heads_too() {
    let serving = server().serve_http("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.address());
    let transport = Reconnect::connect(move || {
        let url = url.clone();
        async move { Http::new(url).map_err(std::io::Error::other) }
    });
    let (log, records) = collected();
    let client = client(Mode::Legacy).message_log(log);
    let connection = client.connect(transport.await.unwrap()).await.unwrap();
    connection.call_tool("steps", ()).await.unwrap();
    connection.close().await;
    let records = records.lock().unwrap();
    let called = records.iter().find(|record| record["message"]["method"] == "tools/call").unwrap();
    assert_eq!(called["http"]["method"], "POST", "{called}");
    let headers = called["http"]["headers"].as_array().unwrap();
    assert!(headers.iter().any(|header| header[0] == "content-type"), "{called}");
}
