//! Over HTTP, what a server sends on the stream of a request belongs to that request.

use std::sync::{Arc, Mutex};

use pintle::client::Answer;
use serde_json::{Value, json};

use crate::support::scripted_http::{Saying, Script, client, script};

const GET: &str = "GET http://server.test/mcp";

fn by(name: &str) -> Answer {
    Answer::accept(json!({ "by": name }))
}

fn ask(stream: &Saying, id: &str) {
    let params = json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
    let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    stream.sends(&format!("data: {question}\n\n"));
}

/// The client's answer to a question: its id, and who gave it.
async fn answered(server: &mut Script) -> (Value, Value) {
    let answer = server.next().await;
    let message = answer.message();
    answer.status(202);
    (message["id"].clone(), message["result"]["content"]["by"].clone())
}

#[tokio::test(start_paused = true)]
async fn questions_and_log_messages_of_a_session_belong_to_the_request_of_their_stream() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let (mut server, http) = script();
        let all = Arc::new(Mutex::new(Vec::new()));
        let client = client().on_elicit(|_| async { by("client") }).on_log({
            let all = all.clone();
            move |report| all.lock().unwrap().push(report.data.to_string())
        });
        let connection = server.shakes(revision, client, http).await;
        let session = server.line(GET).await.events();
        let logs = Arc::new(Mutex::new(Vec::new()));
        let call = |name: &'static str| {
            let logs = logs.clone();
            let call = connection.call(name).on_elicit(move |_| async move { by(name) });
            call.on_log(move |message| logs.lock().unwrap().push(format!("{name} {}", message.data)))
        };
        let (first, second, ()) = tokio::join!(call("a").send(), call("b").send(), async {
            let mut streams = Vec::new();
            for _ in 0..2 {
                let call = server.receives("tools/call").await;
                let message = call.message();
                streams.push((message["params"]["name"].clone(), message["id"].clone(), call.events()));
            }
            for (name, _, stream) in streams.iter().rev() {
                let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info", "data": 1}});
                stream.sends(&format!("data: {log}\n\n"));
                ask(stream, name.as_str().unwrap());
                assert_eq!(answered(&mut server).await, (name.clone(), name.clone()));
            }
            // The stream of the session belongs to no request.
            ask(&session, "q");
            assert_eq!(answered(&mut server).await, (json!("q"), json!("client")));
            let log =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":2}}"#;
            session.sends(&format!("data: {log}\n\n"));
            for (_, id, stream) in &streams {
                let done = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
                stream.sends(&format!("data: {done}\n\n"));
            }
        });
        first.unwrap();
        second.unwrap();
        assert_eq!(*logs.lock().unwrap(), ["b 1", "a 1"]);
        assert_eq!(*all.lock().unwrap(), ["2"]);
    }
}
