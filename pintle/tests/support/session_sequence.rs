//! A client that knows every request of a session and no order.

use std::time::Duration;

use http::Response;
use pintle::{
    Server, Timeouts,
    server::{
        Cx, Field, Form, ToolError,
        http::{Body, Http},
        tool,
    },
};
use serde_json::{Value, json};

use super::{course::Course, exchange, run};

/// Sends requests in the order that these bytes say. Each is answered at once or with a stream, no call is answered twice,
/// and when the client is gone for long nothing is left of it.
pub(crate) fn play(course: &[u8]) {
    run(async {
        let http = server().http().expect("the server is sound");
        let mut client = Client::new(http.clone());
        let mut course = Course(course);
        while !course.0.is_empty() {
            client.step(&mut course).await;
        }
        client.streams.clear();
        tokio::time::sleep(IDLE * 40).await;
        assert_eq!(http.sessions(), 0, "a session outlives its client");
    });
}

const IDLE: Duration = Duration::from_secs(30);

fn server() -> Server {
    let mut timeouts = Timeouts::default();
    timeouts.idle_session = IDLE;
    Server::new("steps", "1")
        .timeouts(timeouts)
        .call_timeout(IDLE)
        .tool(tool("echo", || async { "here" }))
        .tool(tool("steps", |cx: Cx| async move {
            for step in 1..4 {
                cx.progress(f64::from(step), None).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            "done"
        }))
        .tool(tool("ask", |cx: Cx| async move {
            let form = Form::new().field("answer", Field::text());
            let filled = cx.elicit_form("question", "Well?", &form).await?.accepted().unwrap_or_default();
            Ok::<_, ToolError>(filled["answer"].as_str().unwrap_or_default().to_owned())
        }))
}

struct Client {
    http: Http,
    sessions: Vec<String>,
    /// Streams that are open, and what has come on them.
    streams: Vec<(Body, String)>,
    /// Event ids that came.
    events: Vec<String>,
    /// Ids of the server's questions.
    questions: Vec<Value>,
    answered: Vec<i64>,
    sent: i64,
}

impl Client {
    fn new(http: Http) -> Self {
        let (sessions, streams, events) = (Vec::new(), Vec::new(), Vec::new());
        Self { http, sessions, streams, events, questions: Vec::new(), answered: Vec::new(), sent: 0 }
    }

    async fn step(&mut self, course: &mut Course<'_>) {
        let revision = course.of(&["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "1999-01-01"]);
        match course.below(12) {
            0 | 1 => {
                let capabilities = course.of(&[r#"{"elicitation":{}}"#, "{}", "7"]);
                let params = format!(
                    r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}"#
                );
                self.request("initialize", &params, revision, course).await;
            }
            2 => {
                let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                self.post(notified.to_string(), revision, course).await;
            }
            3 | 4 => {
                let name = course.of(&["echo", "steps", "ask", "none"]);
                let params = format!(r#"{{"name":"{name}","_meta":{{"progressToken":1}}}}"#);
                self.request("tools/call", &params, revision, course).await;
            }
            5 => {
                let id = self.questions.pop().unwrap_or(json!("none"));
                let content = json!({"action": "accept", "content": {"answer": "yes"}});
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": content});
                self.post(answer.to_string(), revision, course).await;
            }
            6 => {
                let last = match (course.below(3), self.events.last()) {
                    (0, _) => None,
                    (1, Some(event)) => Some(event.clone()),
                    _ => Some(String::from_utf8_lossy(course.bytes(6)).into_owned()),
                };
                self.send("GET", String::new(), revision, last, course).await;
            }
            7 if course.below(3) == 0 => {
                self.send("DELETE", String::new(), revision, None, course).await;
            }
            7 | 8 => {
                let cancelled = json!({"requestId": self.sent, "reason": "no"});
                let notified =
                    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
                self.post(notified.to_string(), revision, course).await;
            }
            9 if !self.streams.is_empty() => {
                let at = course.below(self.streams.len());
                drop(self.streams.swap_remove(at));
            }
            10 => {
                let garbage = String::from_utf8_lossy(course.bytes(12)).into_owned();
                self.post(garbage, revision, course).await;
            }
            _ => self.listen(Duration::from_secs(course.of(&[1, 5, 60]))).await,
        }
    }

    async fn request(&mut self, method: &str, params: &str, revision: &str, course: &mut Course<'_>) {
        self.sent += 1;
        let id = self.sent;
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let message = if course.below(8) == 7 { format!("[{message}]") } else { message };
        self.post(message, revision, course).await;
    }

    async fn post(&mut self, message: String, revision: &str, course: &mut Course<'_>) {
        self.send("POST", message, revision, None, course).await;
    }

    async fn send(
        &mut self,
        method: &str,
        body: String,
        revision: &str,
        last: Option<String>,
        course: &mut Course<'_>,
    ) {
        let mut headers = vec![("mcp-protocol-version", revision)];
        let some = self.sessions.get(course.below(self.sessions.len() + 1)).cloned();
        let session = if course.below(8) == 7 { Some("nobody's".to_owned()) } else { some };
        headers.extend(session.as_deref().map(|session| ("mcp-session-id", session)));
        let last = last.filter(|last| last.bytes().all(|byte| byte.is_ascii_graphic()));
        headers.extend(last.as_deref().map(|last| ("last-event-id", last)));
        let request = exchange::send(&self.http, method, &headers, body);
        // Who is not answered within the time that a call may take is not answered at all.
        let response = tokio::time::timeout(IDLE * 4, request).await.expect("every request is answered");
        self.take(response).await;
    }

    async fn take(&mut self, response: Response<Body>) {
        let (head, body) = response.into_parts();
        assert!(head.status.as_u16() != 500, "a fault of the server's own");
        if let Some(id) = head.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()) {
            self.sessions.push(id.to_owned());
        }
        let kind = head.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind == "text/event-stream" {
            self.streams.push((body, String::new()));
        } else {
            let bytes = exchange::whole(body).await;
            self.read(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Reads what comes on all streams within this time.
    async fn listen(&mut self, time: Duration) {
        for (mut body, mut text) in std::mem::take(&mut self.streams) {
            let until = tokio::time::Instant::now() + time;
            let open = loop {
                match tokio::time::timeout_at(until, exchange::piece(&mut body)).await {
                    Ok(Some(piece)) => text += &String::from_utf8_lossy(&piece),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            while let Some((event, rest)) = text.split_once("\n\n") {
                for line in event.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => self.events.push(id.to_owned()),
                        Some(("data", data)) => self.read(data),
                        _ => {}
                    }
                }
                text = rest.to_owned();
            }
            if open {
                self.streams.push((body, text));
            }
        }
    }

    fn read(&mut self, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let messages = message.as_array().cloned().unwrap_or(vec![message]);
        for message in messages {
            if message.get("method").is_some() {
                self.questions.extend(message.get("id").cloned());
            } else if let Some(id) = message["id"].as_i64() {
                let resumed = !self.events.is_empty();
                assert!(resumed || !self.answered.contains(&id), "{id} is answered twice: {message}");
                self.answered.push(id);
            }
        }
        self.questions.truncate(8);
    }
}
