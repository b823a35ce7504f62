//! A client with sessions: it calls, answers, resumes, subscribes, cancels and ends its session, at a random process each time.

use std::{sync::Arc, time::Duration};

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

/// A client with sessions.
pub(super) struct SessionClient {
    pub(super) requests: Arc<Requests>,
    pub(super) urls: Vec<String>,
    pub(super) revision: &'static str,
    pub(super) random: Random,
    pub(super) store: Store,
    pub(super) name: String,
    pub(super) tally: Tally,
    /// What happened in this step.
    trace: Trace,
    session: Option<String>,
    pub(super) next_id: u64,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum CallEnd {
    /// A response, and the progress before it.
    Response(Value, Vec<f64>),
    /// A clear error: its name.
    Error(&'static str),
    /// The stream ended without a response.
    Silent,
}

/// The time between two attempts.
pub(super) const RETRY: Duration = Duration::from_millis(150);

impl SessionClient {
    pub(super) fn new(
        requests: Arc<Requests>,
        urls: Vec<String>,
        revision: &'static str,
        random: Random,
        store: Store,
        name: String,
    ) -> Self {
        let (tally, trace) = (Tally::default(), Trace::default());
        Self { requests, urls, revision, random, store, name, tally, trace, session: None, next_id: 0 }
    }

    pub(super) async fn run(mut self, until: Instant) -> Tally {
        while Instant::now() < until {
            self.trace.clear();
            // Longer than every limit of a step together.
            let step = timeout(8 * LIMIT, self.step()).await;
            if let Err(violation) = step.unwrap_or_else(|_| Err("a step did not end".into())) {
                self.tally.violate(format!("{}: {violation}", self.name), &mut self.trace);
                self.session = None;
            }
        }
        self.tally
    }

    async fn step(&mut self) -> Result<(), String> {
        if self.session.is_none() && !self.open().await? {
            sleep(RETRY).await;
            return Ok(());
        }
        let has_tasks = self.revision == "2025-11-25";
        match self.random.below(if has_tasks { 28 } else { 22 }) {
            0..6 => self.echo().await,
            6..11 => self.steps().await,
            11..15 => self.ask("ask").await,
            15 => self.ask("pay").await,
            16 => self.cancel().await,
            17 | 18 => self.watch().await,
            19 => self.end().await,
            20 | 21 => self.order().await,
            _ => self.task().await,
        }
    }

    fn request(&mut self, method: &str, last: Option<&str>, body: String) -> Request<Bytes> {
        let url = self.random.choose(&self.urls).clone();
        self.trace.add(format_args!("{method} {url} {last:?} {body}"));
        self.request_to(&url, method, last, body)
    }

    fn request_to(&self, url: &str, method: &str, last: Option<&str>, body: String) -> Request<Bytes> {
        let accept =
            if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header("content-type", "application/json")
            .header("accept", accept);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
            // Earlier revisions do not have the header.
            if matches!(self.revision, "2025-06-18" | "2025-11-25") {
                request = request.header("mcp-protocol-version", self.revision);
            }
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        request.body(body.into()).unwrap()
    }

    async fn post(&mut self, message: &Value) -> Result<Option<Incoming>, String> {
        let request = self.request("POST", None, message.to_string());
        send(&self.requests, request).await
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Opens a session. Returns `false` if that did not work out.
    async fn open(&mut self) -> Result<bool, String> {
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": {"sampling": {}},
            "clientInfo": {"name": self.name, "version": "0"},
        });
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let Some(mut opened) = self.post(&initialize).await? else { return Ok(false) };
        if opened.status != 200 {
            return self.expect_busy(&opened, "initialize").map(|()| false);
        }
        let Some(id) = opened.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()) else {
            return Err("`initialize` opened no session".into());
        };
        let id = id.to_owned();
        if !matches!(opened.next(LIMIT).await, Received::Message(_, message) if message["result"].is_object())
        {
            return Ok(false);
        }
        self.session = Some(id);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let delivered = self.deliver(&initialized).await?;
        self.tally.count("session opened");
        Ok(delivered)
    }

    /// Checks that a response that is no success asks for patience.
    fn expect_busy(&self, response: &Incoming, what: &str) -> Result<(), String> {
        if response.status == 503 && response.headers.contains_key("retry-after") {
            return Ok(());
        }
        Err(format!("{what} was answered with {}", response.status))
    }

    /// Notes that the session is gone, which only a store that forgets may cause.
    pub(super) fn lost(&mut self, what: &str) -> Result<(), String> {
        let session = self.session.take();
        self.tally.count("session lost");
        match self.store {
            Store::Forgetful => Ok(()),
            Store::Durable => Err(format!("{what}: the session {session:?} is unknown")),
        }
    }

    /// Sends a notification or an answer until a process has accepted it. Returns `false` if the session is gone.
    async fn deliver(&mut self, message: &Value) -> Result<bool, String> {
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            let posted = self.post(message).await?;
            self.trace.add(format_args!("{:?}", posted.as_ref().map(|posted| posted.status)));
            match posted {
                Some(accepted) if accepted.status == 202 => return Ok(true),
                Some(refused) if refused.status == 404 => {
                    self.lost("a message")?;
                    return Ok(false);
                }
                Some(refused) => self.expect_busy(&refused, "a message")?,
                None => {}
            }
            sleep(RETRY).await;
        }
        Err("a message was never accepted".into())
    }

    /// Asks a process whether the session is there.
    async fn is_there(&mut self) -> Result<bool, String> {
        self.next_id += 1;
        let ping = json!({"jsonrpc": "2.0", "id": self.next_id, "method": "ping"});
        match self.post(&ping).await? {
            Some(gone) if gone.status == 404 => {
                self.lost("a ping")?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Makes a call to its end. If `wanders`, the connection is closed now and then, and the stream resumed elsewhere.
    async fn call(&mut self, name: &str, arguments: Value, wanders: bool) -> Result<CallEnd, String> {
        self.ask_for("tools/call", json!({"name": name, "arguments": arguments}), wanders).await
    }

    /// Makes a request to its end, as [`call`](Self::call) does.
    pub(super) async fn ask_for(
        &mut self,
        method: &str,
        mut params: Value,
        wanders: bool,
    ) -> Result<CallEnd, String> {
        self.next_id += 1;
        let id = self.next_id;
        let name = params["name"].as_str().unwrap_or(method).to_owned();
        let name = &*name;
        params["_meta"] = json!({"progressToken": id});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let Some(mut stream) = self.post(&call).await? else { return Ok(CallEnd::Error("cut")) };
        self.trace.add(stream.status);
        match stream.status.as_u16() {
            200 => {}
            404 => return self.lost(name).map(|()| CallEnd::Error("404")),
            // The store of tasks cannot be reached.
            429 => return Ok(CallEnd::Error("429")),
            _ => return self.expect_busy(&stream, name).map(|()| CallEnd::Error("503")),
        }
        let (mut last, mut progress, mut response) = (None, Vec::new(), None::<Value>);
        let (mut arrived, begun, mut resumed_times) = (Instant::now(), Instant::now(), 0);
        loop {
            // A call may go on at one process after the other.
            if begun.elapsed() > 4 * LIMIT {
                return Err(format!(
                    "`{name}` {id} did not end: resumed {resumed_times} times, after {progress:?} and {last:?}"
                ));
            }
            let received = stream.next(Duration::from_secs(5)).await;
            self.trace.add(format_args!("{received:?}"));
            if !matches!(received, Received::Silence) {
                arrived = Instant::now();
            }
            match received {
                Received::Position(position) => last = Some(position),
                Received::Message(position, message) => {
                    last = position.or(last);
                    if message["method"] == "sampling/createMessage" {
                        let text = format!("{}-{id}", self.name);
                        let result = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}});
                        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                        if !self.deliver(&answer).await? {
                            return Ok(CallEnd::Error("404"));
                        }
                    } else if message["method"] == "notifications/cancelled" {
                        self.tally.count(format!("{name}: goes on at another process"));
                    } else if let Some(step) = message["params"]["progress"].as_f64() {
                        progress.push(step);
                    } else if message["id"] == id && message["method"].is_null() {
                        if response.is_some() {
                            return Err(format!("`{name}` was answered twice"));
                        }
                        response = Some(message);
                    } else if message["method"].is_null() {
                        return Err(format!("`{name}` {id} received the response {message}"));
                    }
                    let leaves = wanders && response.is_none() && last.is_some() && self.random.below(6) == 0;
                    if leaves {
                        match self.resume(last.as_deref()).await? {
                            Ok(resumed) => stream = resumed,
                            Err(end) => return Ok(end),
                        }
                    }
                }
                Received::End | Received::Cut if response.is_some() => break,
                Received::End if last.is_none() => return Ok(CallEnd::Silent),
                Received::Cut if last.is_none() => return Ok(CallEnd::Error("cut")),
                Received::End | Received::Cut => {
                    resumed_times += 1;
                    match self.resume(last.as_deref()).await? {
                        Ok(resumed) => stream = resumed,
                        Err(end) => return Ok(end),
                    }
                }
                Received::Silence if !self.is_there().await? => return Ok(CallEnd::Error("404")),
                Received::Silence if arrived.elapsed() > LIMIT => {
                    return Err(format!("`{name}` {id} was never answered, after {progress:?} and {last:?}"));
                }
                Received::Silence => {}
            }
        }
        let contiguous = progress.iter().enumerate().all(|(place, step)| *step == place as f64);
        if !contiguous {
            return Err(format!("the progress of `{name}` is {progress:?}"));
        }
        Ok(response.map_or(CallEnd::Silent, |response| CallEnd::Response(response, progress)))
    }

    /// Resumes a stream at a random process.
    async fn resume(&mut self, last: Option<&str>) -> Result<Result<Incoming, CallEnd>, String> {
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            let request = self.request("GET", last, String::new());
            let resumed = send(&self.requests, request).await?;
            self.trace.add(format_args!("resumed: {:?}", resumed.as_ref().map(|resumed| resumed.status)));
            match resumed {
                Some(resumed) if resumed.status == 200 => {
                    self.tally.count("stream resumed");
                    return Ok(Ok(resumed));
                }
                Some(gone) if gone.status == 400 => return Ok(Err(CallEnd::Error("400"))),
                Some(gone) if gone.status == 404 => {
                    return self.lost("a stream").map(|()| Err(CallEnd::Error("404")));
                }
                Some(busy) => self.expect_busy(&busy, "a stream")?,
                None => {}
            }
            sleep(RETRY).await;
        }
        Err("a stream could not be resumed".into())
    }

    /// Checks the end of a call that has to have this result.
    fn expect(&mut self, name: &str, end: CallEnd, text: impl Fn(&str) -> bool) -> Result<(), String> {
        match end {
            CallEnd::Response(response, _) => match response["result"]["content"][0]["text"].as_str() {
                Some(reason) if response["result"]["isError"] == true => {
                    let reason: String = reason.chars().take(60).collect();
                    self.tally.count(format!("{name}: `{reason}`"));
                }
                Some(found) if text(found) => self.tally.count(format!("{name}: ok")),
                Some(found) => return Err(format!("`{name}` returned `{found}`")),
                None => {
                    let error = response["error"]["message"].as_str().unwrap_or("?");
                    let error: String = error.chars().take(60).collect();
                    self.tally.count(format!("{name}: error `{error}`"));
                }
            },
            CallEnd::Error(kind) => self.tally.count(format!("{name}: {kind}")),
            CallEnd::Silent => return Err(format!("the stream of `{name}` ended without a response")),
        }
        Ok(())
    }

    async fn echo(&mut self) -> Result<(), String> {
        let n = self.random.below(1_000_000);
        let end = self.call("echo", json!({"n": n}), false).await?;
        self.expect("echo", end, |text| text == n.to_string())
    }

    async fn steps(&mut self) -> Result<(), String> {
        let n = 1 + self.random.below(20);
        let end = self.call("steps", json!({"n": n}), true).await?;
        if let CallEnd::Response(response, progress) = &end
            && response["result"].is_object()
            && progress.len() as u64 != n
        {
            return Err(format!("`steps` of {n} reported {progress:?}"));
        }
        self.expect("steps", end, |text| text == "done")
    }

    async fn ask(&mut self, name: &str) -> Result<(), String> {
        let end = self.call(name, json!({}), true).await?;
        let word = format!("{}-{}", self.name, self.next_id);
        let is_ask = name == "ask";
        // A ping may have taken a number since.
        let (prefix, _) = word.rsplit_once('-').unwrap();
        self.expect(name, end, |text| if is_ask { text.starts_with(prefix) } else { text.ends_with(" true") })
    }

    /// Calls a tool that another process goes on with if its own dies.
    async fn order(&mut self) -> Result<(), String> {
        let key = format!("call {} of {}", self.next_id, self.name);
        let end = self.call("order", json!({"key": key}), true).await?;
        let prefix = format!("{key}: {}", self.name);
        self.expect("order", end, |text| text.starts_with(&prefix) && text.ends_with(", true"))
    }

    async fn cancel(&mut self) -> Result<(), String> {
        self.next_id += 1;
        let id = self.next_id;
        // The call becomes a stream when it has been silent for long, so the request is made in the background.
        let params = json!({"name": "wait", "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let request = self.request("POST", None, call.to_string());
        let requests = self.requests.clone();
        let called = tokio::spawn(async move { send(&requests, request).await });
        sleep(Duration::from_millis(100)).await;
        let params = json!({"requestId": id, "reason": "enough"});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let start = Instant::now();
        // Repeated, because it may arrive before the call does, and the process may come back.
        while !called.is_finished() {
            if start.elapsed() > LIMIT {
                return Err("a call that was cancelled never ended".into());
            }
            if !self.deliver(&cancel).await? {
                called.abort();
                return Ok(());
            }
            sleep(Duration::from_millis(500)).await;
        }
        let Some(mut ended) = called.await.map_err(|error| error.to_string())?? else {
            self.tally.count("cancel: cut");
            return Ok(());
        };
        match ended.status.as_u16() {
            404 => return self.lost("wait"),
            503 => return self.expect_busy(&ended, "wait"),
            _ => {}
        }
        if let Received::Message(_, message) = ended.next(LIMIT).await
            && message["result"].is_object()
        {
            return Err(format!("a call that was cancelled returned {message}"));
        }
        self.tally.count("cancel: ok");
        Ok(())
    }

    /// Subscribes to a resource, and changes it at another process.
    async fn watch(&mut self) -> Result<(), String> {
        let uri = format!("note://{}", self.random.below(1_000_000_000));
        self.next_id += 1;
        let subscribe = json!({"jsonrpc": "2.0", "id": self.next_id, "method": "resources/subscribe", "params": {"uri": uri}});
        let Some(mut subscribed) = self.post(&subscribe).await? else { return Ok(()) };
        match subscribed.status.as_u16() {
            200 => {}
            404 => return self.lost("subscribe"),
            _ => return self.expect_busy(&subscribed, "subscribe"),
        }
        match subscribed.next(LIMIT).await {
            Received::Message(_, message) if message["result"].is_object() => {}
            Received::Message(_, message) => return Err(format!("a subscription was refused: {message}")),
            _ => return Ok(()),
        }
        let request = self.request("GET", None, String::new());
        let Some(mut stream) = send(&self.requests, request).await? else { return Ok(()) };
        match stream.status.as_u16() {
            200 => {}
            404 => return self.lost("a GET stream"),
            _ => return self.expect_busy(&stream, "a GET stream"),
        }
        let end = self.call("touch", json!({"uri": uri}), false).await?;
        let is_touched = matches!(&end, CallEnd::Response(response, _) if response["result"].is_object());
        self.expect("touch", end, |text| text == "touched")?;
        if !is_touched {
            return Ok(());
        }
        let start = Instant::now();
        while start.elapsed() < LIMIT {
            match stream.next(Duration::from_secs(5)).await {
                Received::Message(_, message) if message["params"]["uri"] == uri.as_str() => {
                    self.tally.count("watch: received");
                    return Ok(());
                }
                Received::Message(..) | Received::Position(_) => {}
                Received::Cut | Received::End => {
                    self.tally.count("watch: cut");
                    return Ok(());
                }
                Received::Silence if !self.is_there().await? => return Ok(()),
                Received::Silence => {}
            }
        }
        Err(format!("the change of `{uri}` was not received"))
    }

    /// Ends the session, and checks that no process serves it any more.
    async fn end(&mut self) -> Result<(), String> {
        let request = self.request("DELETE", None, String::new());
        let ended = send(&self.requests, request).await?;
        let status = ended.as_ref().map(|ended| ended.status.as_u16());
        match status {
            Some(204) => {}
            Some(404) => return self.lost("DELETE"),
            // Nobody knows whether it was ended.
            _ => {
                self.session = None;
                self.tally.count("end: unclear");
                return ended.map_or(Ok(()), |ended| self.expect_busy(&ended, "DELETE"));
            }
        }
        for url in self.urls.clone() {
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
            let request = self.request_to(&url, "POST", None, ping);
            if let Some(answer) = send(&self.requests, request).await?
                && answer.status == 200
            {
                return Err("a session that was ended is served".into());
            }
        }
        self.session = None;
        self.tally.count("end: ok");
        Ok(())
    }
}
