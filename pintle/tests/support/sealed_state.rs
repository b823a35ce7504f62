//! A client that tampers with what it was given to carry.

use http::StatusCode;
use pintle::{
    Server,
    server::{Args, Cx, Field, Form, ToolError, http::Http, tool},
};
use serde_json::{Value, json};

use super::{course::Course, exchange, run};

/// Changes a `requestState` as these bytes say: every change is refused, and refusals do not use the state up.
pub(crate) fn play(course: &[u8]) {
    run(async {
        let http = server().http().expect("the server is sound");
        let asked = call(&http, "seven", None).await;
        let state = asked["result"]["requestState"].as_str().expect("a question has a state").to_owned();
        let mut course = Course(course);
        while !course.0.is_empty() {
            let (tampered, word) = tamper(&state, &mut course);
            if tampered == state && word == "seven" {
                continue;
            }
            let refused = call(&http, word, Some(&tampered)).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
        let answered = call(&http, "seven", Some(&state)).await;
        assert_eq!(answered["result"]["content"][0]["text"], "seven: yes", "{answered}");
    });
}

fn tamper(state: &str, course: &mut Course<'_>) -> (String, &'static str) {
    let mut bytes = state.as_bytes().to_vec();
    let at = (course.below(256) * 256 + course.below(256)) % bytes.len();
    match course.below(6) {
        0 => bytes[at] = b"AZaz09-_"[course.below(8)],
        1 => bytes.truncate(at),
        2 => bytes.extend(course.bytes(4).iter().map(|byte| b"AZaz09-_"[usize::from(byte % 8)])),
        3 => drop(bytes.remove(at)),
        4 => bytes.swap(at, 0),
        _ => bytes = course.bytes(64).to_vec(),
    }
    let word = course.of(&["seven", "eight"]);
    (String::from_utf8_lossy(&bytes).into_owned(), word)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

fn server() -> Server {
    Server::new("carried", "1").tool(tool("ask", |cx: Cx, Args(Word { word }): Args<Word>| async move {
        let form = Form::new().field("answer", Field::text());
        let filled = cx.elicit_form("question", "Well?", &form).await?.accepted().unwrap_or_default();
        Ok::<_, ToolError>(format!("{word}: {}", filled["answer"].as_str().unwrap_or_default()))
    }))
}

async fn call(http: &Http, word: &str, state: Option<&str>) -> Value {
    let mut params = json!({"name": "ask", "arguments": {"word": word}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    if let Some(state) = state {
        params["requestState"] = state.into();
        params["inputResponses"] = json!({"question": {"action": "accept", "content": {"answer": "yes"}}});
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "ask")];
    let response = exchange::send(http, "POST", &headers, message.to_string()).await;
    assert!(matches!(response.status(), StatusCode::OK | StatusCode::BAD_REQUEST), "{}", response.status());
    serde_json::from_slice(&exchange::whole(response.into_body()).await).expect("the answer is JSON")
}
