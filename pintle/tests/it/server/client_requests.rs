//! Requests of a server whose methods the protocol does not define.

use std::sync::{Arc, Mutex};

use pintle::{
    Client, Server,
    client::{self, Mode, Question},
    proto::Revision,
    server::{Args, AskError, Cx, SessionError, ToolError, tool},
    types::RpcError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    eras::{ALL, R5},
    over::{Over, TRANSPORTS},
};

#[derive(Clone, Deserialize, JsonSchema, Serialize)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Deserialize, Serialize)]
struct Sum {
    sum: i64,
}

/// A server whose tool has its client add.
fn server() -> Server {
    let add = |cx: Cx, Args(add): Args<Add>| async move {
        let Sum { sum } = cx.request("example.com/add", add).await?;
        Ok::<_, ToolError>(sum)
    };
    Server::new("s", "1").tool(tool("add", add))
}

fn client(revision: &str) -> Client {
    let revision: Revision = revision.parse().unwrap();
    Client::new("c", "1")
        .mode(if revision.as_str() == R5 { Mode::Modern } else { Mode::Legacy })
        .revisions([revision])
}

#[tokio::test]
async fn a_handler_sends_its_client_a_request_of_any_method_where_there_are_sessions() {
    for over in TRANSPORTS {
        for revision in ALL {
            let layered = Arc::new(Mutex::new(Vec::new()));
            let seen = layered.clone();
            let client = client(revision)
                .method("example.com/add", |question: Question<Add>| async move {
                    Ok(Sum { sum: question.a + question.b })
                })
                .layer(&client::around(move |cx: client::Cx, next: client::Next| {
                    if cx.direction() == client::Direction::In {
                        seen.lock().unwrap().push(cx.method().to_owned());
                    }
                    next.run(cx)
                }));
            let server = server();
            let connection = over.connect(&client, &server, revision).await.unwrap();
            let called = connection.call_tool("add", Add { a: 1, b: 2 }).await;
            if revision == R5 {
                let error = called.unwrap_err().to_string();
                let wanted = "`example.com/add` cannot be sent to a client without a session";
                assert!(error.contains(wanted), "{revision} over {over:?}: {error}");
                continue;
            }
            let called = called.unwrap();
            let context = format!("{revision} over {over:?}: {}", called.text());
            assert_eq!(called.text(), "3", "{context}");
            assert!(layered.lock().unwrap().contains(&"example.com/add".to_owned()), "{context}");

            // Outside of a call.
            let session = server.sessions().pop().unwrap();
            let sum: Sum = session.request("example.com/add", Add { a: 2, b: 2 }).await.unwrap();
            assert_eq!(sum.sum, 4, "{context}");
            let refused = session.request::<_, Sum>("example.com/multiply", json!({})).await.unwrap_err();
            assert!(refused.to_string().contains("example.com/multiply"), "{refused}");
            let wrong = session.request::<_, Sum>("example.com/add", json!({"a": "x"})).await.unwrap_err();
            assert!(matches!(&wrong, SessionError::Failed { .. }), "{wrong}");
            let unread =
                session.request::<_, Vec<u8>>("example.com/add", Add { a: 2, b: 2 }).await.unwrap_err();
            assert!(matches!(&unread, SessionError::Failed { .. }), "{unread}");
            connection.close().await;
        }
    }
}

#[tokio::test]
async fn what_cannot_be_sent_or_read_is_an_error_with_its_reason() {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let noted = errors.clone();
    let ask = move |cx: Cx| {
        let noted = noted.clone();
        async move {
            for (method, params) in [
                ("roots/list", json!({})),
                ("example.com/add", json!([1])),
                ("example.com/none", json!({})),
                ("example.com/fail", json!({})),
                ("example.com/panic", json!({})),
                // Only a question of the protocol gets an id of its page.
                ("example.com/echo", json!({"mode": "url", "url": "x"})),
            ] {
                let result = cx.request::<Value, Value>(method, params).await;
                noted.lock().unwrap().push(result);
            }
            let text = cx
                .request::<_, Sum>("example.com/echo", json!({"sum": "no"}))
                .await
                .map(|sum| json!(sum.sum));
            noted.lock().unwrap().push(text);
            "asked"
        }
    };
    let server = Server::new("s", "1").tool(tool("ask", ask));
    let client = client("2025-11-25")
        .method("example.com/echo", |question: Question<Value>| async move { Ok(question.params) })
        .method("example.com/fail", |_: Question<Value>| async move {
            Err::<Value, _>(RpcError::invalid_request("not now"))
        })
        .method("example.com/panic", |_: Question<Value>| async move {
            if true { panic!("a bug") } else { Ok(json!({})) }
        });
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    connection.call_tool("ask", ()).await.unwrap();
    let errors: Vec<_> = std::mem::take(&mut *errors.lock().unwrap());
    let [protocol, params, none, fail, panic, echo, wrong] = &errors[..] else { panic!("{errors:?}") };
    let text = |result: &Result<Value, AskError>| result.as_ref().unwrap_err().to_string();
    assert_eq!(text(protocol), "`roots/list` is a method of the protocol: use the function that sends it");
    assert!(text(params).contains("the params of `example.com/add` are not an object"), "{params:?}");
    assert!(text(none).contains("example.com/none") && matches!(none, Err(AskError::Refused(_))), "{none:?}");
    assert!(text(fail).contains("not now"), "{fail:?}");
    assert!(text(panic).contains("the client failed to answer"), "{panic:?}");
    assert_eq!(echo.as_ref().unwrap(), &json!({"mode": "url", "url": "x"}));
    assert!(matches!(wrong, Err(AskError::BadAnswer { key, .. }) if key == "example.com/echo"), "{wrong:?}");
}

#[tokio::test]
async fn a_method_that_cannot_be_handled_is_an_error_of_connect() {
    let echo = |question: Question<Value>| async move { Ok(question.params) };
    let server = Server::new("s", "1");
    for (client, wanted) in [
        (Client::new("c", "1").method("roots/list", echo), "is a method of the protocol"),
        (Client::new("c", "1").method("a/b", echo).method("a/b", echo), "already registered"),
    ] {
        let error = Over::Pipe.connect(&client, &server, R5).await.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
