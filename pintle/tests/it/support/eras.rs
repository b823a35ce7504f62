//! One scenario, told to a server by a client of every revision: in a session, and without one.

use std::{collections::VecDeque, time::Duration};

use pintle::Server;
use serde_json::{Value, json};

use crate::support::line_client::Raw;

pub(crate) const R1: &str = "2024-11-05";
pub(crate) const R2: &str = "2025-03-26";
pub(crate) const R3: &str = "2025-06-18";
pub(crate) const R4: &str = "2025-11-25";
pub(crate) const R5: &str = "2026-07-28";
pub(crate) const ALL: [&str; 5] = [R1, R2, R3, R4, R5];
/// The revisions with sessions on one HTTP endpoint.
pub(crate) const HTTP_SESSIONS: [&str; 3] = [R2, R3, R4];
/// Those in which a client can be asked to show a form.
pub(crate) const WITH_FORMS: [&str; 3] = [R3, R4, R5];

/// A client of some revision. What it says and hears is the same in every one.
pub(crate) struct Client {
    raw: Raw,
    pub(crate) revision: &'static str,
    capabilities: Value,
    /// What the server has declared in the handshake, if there is one.
    declared: Value,
    log_level: Option<&'static str>,
    /// Notifications that came while something else was awaited.
    received: VecDeque<Value>,
    /// How questions are answered: method and params in, result out. In a session, `{"rpcError": …}` is sent as an error.
    pub(crate) answer: Box<Answering>,
    /// Questions that were asked.
    pub(crate) questions: usize,
}

type Answering = dyn FnMut(&str, &Value) -> Value + Send;

/// Runs a scenario as a client of each of these revisions, each on a connection of its own.
pub(crate) async fn each(
    server: &Server,
    revisions: &[&'static str],
    capabilities: Value,
    scenario: impl AsyncFn(&mut Client),
) {
    for revision in revisions {
        let mut client = Client::open(server, revision, capabilities.clone()).await;
        scenario(&mut client).await;
    }
}

/// The code that a revision has for what is not there.
pub(crate) fn not_found(client: &Client) -> i32 {
    if client.revision == R5 { -32602 } else { -32002 }
}

impl Client {
    pub(crate) async fn open(server: &Server, revision: &'static str, capabilities: Value) -> Self {
        Self::over(Raw::new(server), revision, capabilities).await
    }

    pub(crate) async fn over(mut raw: Raw, revision: &'static str, capabilities: Value) -> Self {
        let declared = match revision {
            R5 => Value::Null,
            _ => raw.open(revision, capabilities.clone()).await,
        };
        Self {
            raw,
            revision,
            capabilities,
            declared,
            log_level: None,
            received: VecDeque::new(),
            answer: Box::new(|method, params| panic!("unexpected {method}: {params}")),
            questions: 0,
        }
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.revision == R5
    }

    /// Returns what the server declares.
    pub(crate) async fn declared(&mut self) -> Value {
        match self.is_stateless() {
            true => self.call("server/discover", json!({})).await["result"].clone(),
            false => self.declared.clone(),
        }
    }

    /// Wants log messages as grave as this and graver.
    pub(crate) async fn log_level(&mut self, level: &'static str) {
        if self.is_stateless() {
            self.log_level = Some(level);
        } else {
            let set = self.call("logging/setLevel", json!({"level": level})).await;
            assert!(set["result"].is_object(), "{set}");
        }
    }

    /// Makes a request and returns the whole answer. Questions on the way are answered; notifications are kept.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let mut sent = params.clone();
        loop {
            let id = self.send(method, sent).await;
            let answer = self.until(id).await;
            let result = &answer["result"];
            if result["resultType"] != "input_required" {
                return answer;
            }
            sent = params.clone();
            sent["requestState"] = result["requestState"].clone();
            sent["inputResponses"] = json!({});
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                self.questions += 1;
                sent["inputResponses"][key] =
                    (self.answer)(question["method"].as_str().unwrap(), &question["params"]);
            }
        }
    }

    /// Calls a tool without arguments; returns the text of the first block.
    pub(crate) async fn tool(&mut self, name: &str) -> String {
        let answer = self.call("tools/call", json!({"name": name})).await;
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Calls a tool while another request is running; both must be answered, in any order.
    pub(crate) async fn tool_while(&mut self, name: &str, running: i64) -> String {
        let id = self.send("tools/call", json!({"name": name})).await;
        let mut notified = String::new();
        let mut open = vec![id, running];
        while !open.is_empty() {
            let message = self.recv().await;
            match message.get("id").and_then(Value::as_i64) {
                Some(found) => {
                    open.retain(|id| *id != found);
                    if found == id {
                        notified = message["result"]["content"][0]["text"].as_str().unwrap().to_owned();
                    }
                }
                None => self.received.push_back(message),
            }
        }
        notified
    }

    /// Sends a request in the era's clothes; returns its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> i64 {
        if self.is_stateless() {
            params = crate::support::line_client::modern(params, self.capabilities.clone());
            if let Some(level) = self.log_level {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
            }
        }
        self.raw.request(method, params).await
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.raw.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Waits for the answer to this request.
    pub(crate) async fn until(&mut self, id: i64) -> Value {
        loop {
            let message = self.recv().await;
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (None, Some(found)) if *found == id => return message,
                (Some(method), Some(asked)) => {
                    self.questions += 1;
                    let result = (self.answer)(method, &message["params"]);
                    let reply = match result.get("rpcError") {
                        Some(error) => json!({"jsonrpc": "2.0", "id": asked, "error": error}),
                        None => json!({"jsonrpc": "2.0", "id": asked, "result": result}),
                    };
                    self.raw.send(reply).await;
                }
                (Some(_), None) => self.received.push_back(message),
                _ => panic!("unexpected {message}"),
            }
        }
    }

    /// Wants to hear of changed lists and of these resources.
    pub(crate) async fn listen(&mut self, uris: &[&str]) {
        if self.is_stateless() {
            let filter = json!({"toolsListChanged": true, "promptsListChanged": true,
                "resourcesListChanged": true, "resourceSubscriptions": uris});
            self.send("subscriptions/listen", json!({"notifications": filter})).await;
            let acknowledged = self.receive().await;
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        } else {
            for uri in uris {
                let done = self.call("resources/subscribe", json!({"uri": uri})).await;
                assert!(done["result"].is_object(), "{done}");
            }
        }
    }

    /// The next notification.
    pub(crate) async fn receive(&mut self) -> Value {
        match self.received.pop_front() {
            Some(message) => message,
            None => {
                let message = self.recv().await;
                assert!(message.get("method").is_some() && message.get("id").is_none(), "{message}");
                message
            }
        }
    }

    /// Notifications that have come so far.
    pub(crate) fn received(&mut self) -> Vec<Value> {
        self.received.drain(..).collect()
    }

    pub(crate) async fn recv(&mut self) -> Value {
        let message = tokio::time::timeout(Duration::from_secs(20), self.raw.recv()).await;
        message.unwrap_or_else(|_| panic!("nothing came ({})", self.revision))
    }
}
