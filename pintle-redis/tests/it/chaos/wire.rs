//! Requests to a process, and what comes back.

use std::{collections::VecDeque, future::poll_fn, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::Body as _;
use pintle::client::http::{Requests, ResponseStream};
use pintle_proto::sse::{Decoder, Event};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

/// The time after which a request counts as never answered.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// The response to a request.
pub(super) struct Incoming {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: ResponseStream,
    is_stream: bool,
    decoder: Decoder,
    events: VecDeque<Event>,
    /// The body of a response that is no stream.
    whole: Vec<u8>,
}

/// The next part of a response.
#[derive(Debug)]
pub(super) enum Received {
    /// A message, with the id of its event.
    Message(Option<String>, Value),
    /// An event without a message, which has an id.
    Position(String),
    /// The response is complete.
    End,
    /// The connection was closed in the middle.
    Cut,
    /// Nothing for a while.
    Silence,
}

/// Sends a request. Returns `None` if the connection failed, and an error if there was no answer at all.
pub(super) async fn send(requests: &Requests, request: Request<Bytes>) -> Result<Option<Incoming>, String> {
    let shown = format!("{} {}", request.method(), request.uri());
    let response = match timeout(LIMIT, requests.stream(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(pintle::Error::Timeout(_))) | Err(_) => return Err(format!("no response to {shown}")),
        Ok(Err(_)) => return Ok(None),
    };
    let (head, body) = response.into_parts();
    let is_stream = head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    Ok(Some(Incoming {
        status: head.status,
        headers: head.headers,
        body,
        is_stream,
        decoder: Decoder::default(),
        events: VecDeque::new(),
        whole: Vec::new(),
    }))
}

impl Incoming {
    /// Returns the next part, after waiting for up to `limit`.
    pub(super) async fn next(&mut self, limit: Duration) -> Received {
        // Comments that keep a stream alive do not extend it.
        let deadline = Instant::now() + limit;
        loop {
            if let Some(event) = self.events.pop_front() {
                match serde_json::from_str(&event.data) {
                    Ok(message) => return Received::Message(event.id, message),
                    Err(_) => match event.id {
                        Some(id) => return Received::Position(id),
                        None => continue,
                    },
                }
            }
            let piece = timeout_at(deadline, poll_fn(|task| Pin::new(&mut self.body).poll_frame(task))).await;
            let piece = match piece {
                Err(_) => return Received::Silence,
                Ok(Some(Err(_))) => return Received::Cut,
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(None) if self.whole.is_empty() => return Received::End,
                Ok(None) => {
                    let whole = std::mem::take(&mut self.whole);
                    return match serde_json::from_slice(&whole) {
                        Ok(message) => Received::Message(None, message),
                        Err(_) => Received::End,
                    };
                }
            };
            if !self.is_stream {
                self.whole.extend_from_slice(&piece);
                continue;
            }
            let mut rest = &piece[..];
            while let Ok(Some(event)) = self.decoder.next(&mut rest) {
                self.events.push_back(event);
            }
        }
    }
}
