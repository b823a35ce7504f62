//! What is known to go wrong elsewhere goes right here.

use pintle::{
    Ended, Server,
    server::{Arguments, Cx, resource, tool},
    types::schema::LoggingLevel,
};
use serde_json::{Value, json};

use crate::support::{
    line_client::modern,
    pipe::{Pipe, call, session_call, text, within},
};

fn server() -> Server {
    let talk = |cx: Cx| async move {
        for n in 0..500 {
            cx.progress(f64::from(n), 500.0).await;
            cx.log(LoggingLevel::Info, None, &n).await;
            if n % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        "talked"
    };
    Server::new("the-author's", "9.9")
        .logging()
        .tool(tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() }))
        .tool(tool("talk", talk))
        .resource(resource("r://1", "r", || async { "r" }))
}

#[tokio::test(start_paused = true)]
async fn bad_params_of_a_known_method_are_invalid_params() {
    let (mut pipe, _serving) = Pipe::session(&server(), 1 << 16, "2025-06-18", json!({})).await;
    let (mut alone, _serving) = Pipe::open(&server(), 1 << 16);
    for (method, params) in [
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": "nobody"})),
        ("resources/read", json!({})),
        ("resources/read", json!({"uri": []})),
        ("tools/list", json!({"cursor": "nonsense"})),
        ("tools/list", json!({"cursor": 5})),
        ("logging/setLevel", json!({"level": "loud"})),
        ("resources/subscribe", json!({})),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        pipe.say(message.clone()).await;
        let answer = pipe.receive().await;
        assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
        if matches!(method, "logging/setLevel" | "resources/subscribe") {
            continue;
        }
        let params = modern(params, json!({}));
        alone.say(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
        let answer = alone.receive().await;
        assert_eq!(answer["error"]["code"], -32602, "{message}: {answer}");
    }
    for arguments in [json!([1]), json!("x"), json!(1)] {
        pipe.say(session_call(1, "echo", arguments.clone())).await;
        let old = pipe.receive().await;
        alone.say(call(1, "echo", arguments)).await;
        let new = alone.receive().await;
        for answer in [old, new] {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("`arguments`"), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_name_is_the_authors() {
    let (mut pipe, _serving) = Pipe::open(&server(), 1 << 16);
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "p", "version": "0"}});
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await;
    let info = json!({"name": "the-author's", "version": "9.9"});
    assert_eq!(pipe.receive().await["result"]["serverInfo"], info);
    let params = modern(json!({}), json!({}));
    pipe.say(json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": params})).await;
    let discovered = pipe.receive().await;
    assert!(discovered.to_string().contains("the-author's"), "{discovered}");
}

#[tokio::test(start_paused = true)]
async fn a_level_may_be_set_before_the_client_is_initialized() {
    let (mut pipe, _serving) = Pipe::open(&server(), 1 << 16);
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "p", "version": "0"}});
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await;
    pipe.receive().await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "debug"}}))
        .await;
    assert_eq!(pipe.receive().await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    pipe.say(session_call(3, "echo", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_json_is_answered_and_the_next_is_read() {
    let (mut pipe, serving) = Pipe::open(&server(), 1 << 16);
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("\u{feff}x", -32700),
        ("[]", -32600),
        ("{}", -32600),
        ("7", -32600),
    ] {
        pipe.write(&format!("{line}\n")).await;
        let answer = pipe.receive().await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert_eq!(answer["id"], Value::Null);
    }
    // Answers to nothing are not answered: two that do so would never stop.
    pipe.write("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"?\"}}\n").await;
    pipe.write("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n").await;
    pipe.say(call(1, "echo", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "{}");
    pipe.hang_up().await;
    assert_eq!(within(serving.wait()).await.unwrap(), Ended::ByPeer { known: None });
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_come_in_order_and_before_the_result() {
    let (mut pipe, _serving) = Pipe::session(&server(), 512, "2025-11-25", json!({})).await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}}))
        .await;
    pipe.receive().await;
    for id in 2..22 {
        let mut message = session_call(id, "talk", json!({}));
        message["params"]["_meta"]["progressToken"] = id.into();
        pipe.say(message).await;
        let (mut progress, mut logged) = (None, None);
        loop {
            let line = pipe.receive().await;
            if line["id"] == id {
                break;
            }
            let (newest, number) = match line["method"].as_str().unwrap() {
                "notifications/progress" => (&mut progress, &line["params"]["progress"]),
                _ => (&mut logged, &line["params"]["data"]),
            };
            assert!(number.as_f64() > *newest, "{line} after {newest:?}");
            *newest = number.as_f64();
        }
        // Progress may be merged; the newest is told, and no log message that was waited for is lost.
        assert_eq!((progress, logged), (Some(499.0), Some(499.0)));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_cut_anywhere_are_not_lost() {
    let (mut pipe, _serving) = Pipe::open(&server(), 7);
    let lines: String = (0..50).map(|id| format!("{}\n", call(id, "echo", json!({"id": id})))).collect();
    let Pipe { reader, writer } = &mut pipe;
    let write = async {
        use tokio::io::AsyncWriteExt;
        writer.write_all(lines.as_bytes()).await.unwrap();
    };
    let read = async {
        for id in 0..50 {
            let line = within(reader.next_line()).await.unwrap().unwrap();
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], id);
        }
    };
    tokio::join!(write, read);
}
