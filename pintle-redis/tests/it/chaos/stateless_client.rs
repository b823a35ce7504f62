//! A client without sessions: every request goes to a random process, with the state of its call.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Request;
use pintle::client::http::Requests;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    random::Random,
    tally::Tally,
    trace::Trace,
    wire::{Incoming, LIMIT, Received, send},
    world::Store,
};

const REVISION: &str = "2026-07-28";

/// A client without sessions.
pub(super) struct StatelessClient {
    pub(super) requests: Arc<Requests>,
    pub(super) urls: Vec<String>,
    pub(super) random: Random,
    pub(super) store: Store,
    pub(super) name: String,
    pub(super) tally: Tally,
    /// What happened in this step.
    trace: Trace,
    pub(super) next_id: u64,
}

/// What came of a request.
pub(super) enum Answered {
    /// A result, and the progress before it.
    Result(Value, Vec<f64>),
    /// An error of the server.
    Error(String),
    /// The connection failed, or the server asked for patience.
    Failed(&'static str),
}

impl StatelessClient {
    pub(super) fn new(
        requests: Arc<Requests>,
        urls: Vec<String>,
        random: Random,
        store: Store,
        name: String,
    ) -> Self {
        let (tally, trace) = (Tally::default(), Trace::default());
        Self { requests, urls, random, store, name, tally, trace, next_id: 0 }
    }

    pub(super) async fn run(mut self, until: Instant) -> Tally {
        while Instant::now() < until {
            self.trace.clear();
            // Longer than a step takes whose requests are all answered late.
            let step = timeout(8 * LIMIT, self.step()).await;
            if let Err(violation) = step.unwrap_or_else(|_| Err("a step did not end".into())) {
                self.tally.violate(format!("{}: {violation}", self.name), &mut self.trace);
            }
        }
        self.tally
    }

    async fn step(&mut self) -> Result<(), String> {
        match self.random.below(13) {
            0..3 => self.echo().await,
            3..5 => self.steps().await,
            5..8 => self.pay().await,
            8..10 => self.listen().await,
            _ => self.task().await,
        }
    }

    fn request(&mut self, method: &str, mut params: Value) -> Request<Bytes> {
        self.next_id += 1;
        let name = params.get("name").or(params.get("taskId")).and_then(Value::as_str).map(str::to_owned);
        let url = self.random.choose(&self.urls).clone();
        self.trace.add(format_args!("POST {url} {} {method} {params}", self.next_id));
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {
                "sampling": {},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
            "progressToken": self.next_id,
        });
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        let mut request = Request::post(url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION)
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        request.body(message.to_string().into()).unwrap()
    }

    async fn send(&mut self, request: Request<Bytes>) -> Result<Option<Incoming>, String> {
        let sent = send(&self.requests, request).await?;
        self.trace.add(format_args!("{:?}", sent.as_ref().map(|response| response.status)));
        Ok(sent)
    }

    /// Returns the next part of a response.
    async fn next(&mut self, stream: &mut Incoming) -> Received {
        let received = stream.next(LIMIT).await;
        self.trace.add(format_args!("{received:?}"));
        received
    }

    /// Calls a tool to the end of its round.
    pub(super) async fn call(&mut self, params: Value) -> Result<Answered, String> {
        self.ask_for("tools/call", params).await
    }

    /// Sends a request, and waits for its response.
    pub(super) async fn ask_for(&mut self, method: &str, params: Value) -> Result<Answered, String> {
        let name = params.get("name").map_or_else(|| method.to_owned(), Value::to_string);
        let request = self.request(method, params);
        let id = self.next_id;
        let Some(mut stream) = self.send(request).await? else {
            return Ok(Answered::Failed("cut"));
        };
        if stream.status == 503 && stream.headers.contains_key("retry-after") {
            return Ok(Answered::Failed("503"));
        }
        let (mut progress, mut response) = (Vec::new(), None::<Value>);
        loop {
            match self.next(&mut stream).await {
                Received::Message(_, message) => {
                    if let Some(step) = message["params"]["progress"].as_f64() {
                        progress.push(step);
                    } else if message["id"] == id && response.is_none() {
                        response = Some(message);
                    } else {
                        return Err(format!("{name} {id} received {message}"));
                    }
                }
                Received::Position(_) => {}
                Received::End | Received::Cut if response.is_some() => break,
                Received::End => return Err(format!("the response to {name} is empty: {}", stream.status)),
                Received::Cut => return Ok(Answered::Failed("cut")),
                Received::Silence => return Err(format!("{name} was never answered")),
            }
        }
        let response = response.unwrap_or_default();
        Ok(match response["error"]["message"].as_str() {
            Some(error) => Answered::Error(error.to_owned()),
            None => Answered::Result(response["result"].clone(), progress),
        })
    }

    pub(super) fn count_failure(&mut self, name: &str, answered: &Answered) {
        match answered {
            Answered::Result(..) => {}
            Answered::Error(error) => {
                let error: String = error.chars().take(60).collect();
                self.tally.count(format!("{name}: error `{error}`"));
            }
            Answered::Failed(kind) => self.tally.count(format!("{name}: {kind}")),
        }
    }

    async fn echo(&mut self) -> Result<(), String> {
        let n = self.random.below(1_000_000);
        let text = n.to_string();
        let answered = self.call(json!({"name": "echo", "arguments": {"n": n}})).await?;
        match &answered {
            Answered::Result(result, _) if result["content"][0]["text"].as_str() == Some(&*text) => {
                self.tally.count("stateless echo: ok");
            }
            Answered::Result(result, _) => return Err(format!("`echo` of {n} returned {result}")),
            other => self.count_failure("stateless echo", other),
        }
        Ok(())
    }

    async fn steps(&mut self) -> Result<(), String> {
        let n = 1 + self.random.below(15);
        let answered = self.call(json!({"name": "steps", "arguments": {"n": n}})).await?;
        match &answered {
            Answered::Result(_, progress) => {
                let contiguous = progress.iter().enumerate().all(|(place, step)| *step == place as f64);
                if !contiguous || progress.len() as u64 != n {
                    return Err(format!("`steps` of {n} reported {progress:?}"));
                }
                self.tally.count("stateless steps: ok");
            }
            other => self.count_failure("stateless steps", other),
        }
        Ok(())
    }

    /// Pays in three rounds. A round whose connection failed is sent again, to another process.
    async fn pay(&mut self) -> Result<(), String> {
        let mut params = json!({"name": "pay", "arguments": {}});
        let mut texts = BTreeSet::new();
        for _ in 0..12 {
            let answered = self.call(params.clone()).await?;
            match &answered {
                Answered::Result(result, _) if result["resultType"] == "input_required" => {
                    let answer = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}});
                    let keys = result["inputRequests"].as_object().cloned().unwrap_or_default();
                    let answers = keys.keys().map(|key| (key.clone(), answer.clone()));
                    params["inputResponses"] = Value::Object(answers.collect());
                    params["requestState"] = result["requestState"].clone();
                }
                Answered::Result(result, _) => {
                    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                    if !text.ends_with(" true") {
                        // The tool's own error, such as an unknown outcome.
                        let text: String = text.chars().take(40).collect();
                        self.tally.count(format!("stateless pay: `{text}`"));
                        return Ok(());
                    }
                    texts.insert(text);
                    // The same once more gets the same.
                    if self.random.below(2) == 0 {
                        self.tally.count("stateless pay: ok");
                        return if texts.len() == 1 {
                            Ok(())
                        } else {
                            Err(format!("`pay` returned {texts:?}"))
                        };
                    }
                }
                Answered::Error(_) => {
                    self.count_failure("stateless pay", &answered);
                    return Ok(());
                }
                Answered::Failed(kind) => {
                    self.tally.count(format!("stateless pay: sent again after {kind}"));
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        self.tally.count("stateless pay: given up");
        Ok(())
    }

    /// Listens at one process, and changes a resource at another.
    async fn listen(&mut self) -> Result<(), String> {
        let uri = format!("note://{}", self.random.below(1_000_000_000));
        let params = json!({"notifications": {"resourceSubscriptions": [uri]}});
        let request = self.request("subscriptions/listen", params);
        let Some(mut stream) = self.send(request).await? else { return Ok(()) };
        if !self.is_acknowledged(&mut stream).await? {
            return Ok(());
        }
        let touched = self.call(json!({"name": "touch", "arguments": {"uri": uri}})).await?;
        self.count_failure("stateless touch", &touched);
        if !matches!(touched, Answered::Result(..)) {
            return Ok(());
        }
        loop {
            match self.next(&mut stream).await {
                Received::Message(_, message) if message["params"]["uri"] == uri.as_str() => {
                    self.tally.count("listen: received");
                    return Ok(());
                }
                Received::Message(..) | Received::Position(_) => {}
                Received::Cut | Received::End => {
                    self.tally.count("listen: cut");
                    return Ok(());
                }
                Received::Silence => return Err(format!("the change of `{uri}` was not received")),
            }
        }
    }

    async fn is_acknowledged(&mut self, stream: &mut Incoming) -> Result<bool, String> {
        match self.next(stream).await {
            Received::Message(_, message)
                if message["method"] == "notifications/subscriptions/acknowledged" =>
            {
                Ok(true)
            }
            Received::Message(_, message) => Err(format!("a subscription was answered with {message}")),
            _ => Ok(false),
        }
    }
}
