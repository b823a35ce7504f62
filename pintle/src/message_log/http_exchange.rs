//! The log of one HTTP request and its response.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE};
use pintle_proto::{
    http::MCP_SESSION_ID,
    sse::{Decoder, DecoderLimits, Event},
};

use super::{ConnectionLog, Counters, Direction, HttpRecord, Payload};

/// The log of an HTTP request and its response, for programs that pass them on, such as a proxy.
///
/// ```
/// use std::sync::Arc;
/// use http::{HeaderMap, Method, StatusCode};
/// use pintle::{message_log::{ConnectionLog, Direction, HttpExchangeLog, MessageLog, Side}, transport::TransportKind};
///
/// let (sender, records) = std::sync::mpsc::channel();
/// let log = MessageLog::new(move |record| drop(sender.send(record.to_string())));
/// let connection = ConnectionLog::new(&log, Side::Client, TransportKind::Http, None);
/// let headers = HeaderMap::new();
/// let exchange = Arc::new(HttpExchangeLog::new(connection, Direction::Out, Method::POST, "/mcp?key=1", &headers));
/// exchange.request(b"{}");
/// let mut body = exchange.response(StatusCode::OK, &headers);
/// body.data(b"{\"a\":");
/// body.data(b"1}");
/// drop(body);
/// assert_eq!(records.recv().unwrap(), "1 → POST /mcp?<redacted> #1 {}");
/// assert_eq!(records.recv().unwrap(), "2 ← 200 #1 {\"a\":1}");
/// ```
#[derive(Debug)]
pub struct HttpExchangeLog {
    connection: ConnectionLog,
    exchange: u64,
    method: Method,
    /// The redacted target.
    uri: String,
    /// The redacted headers of the request.
    headers: HeaderMap,
    /// The redacted id of the session in the request.
    session: Option<String>,
    /// The direction of the request.
    request: Direction,
    /// Whether the request was logged.
    requested: AtomicBool,
}

impl HttpExchangeLog {
    /// Creates the log of a request. `request` is its direction, as the side of the connection sees it.
    pub fn new(
        connection: ConnectionLog,
        request: Direction,
        method: Method,
        uri: &str,
        headers: &HeaderMap,
    ) -> Self {
        let redactor = &connection.log.redactor;
        Self {
            exchange: Counters::next(&connection.log.counters.exchanges),
            uri: redactor.url(uri).into_owned(),
            session: headers.get(&MCP_SESSION_ID).map(|id| redactor.tag(id.as_bytes())),
            headers: redactor.headers(headers),
            method,
            request,
            requested: AtomicBool::new(false),
            connection,
        }
    }

    /// Logs the request, unless it was logged already.
    pub fn request(&self, body: &[u8]) {
        if self.requested.swap(true, Ordering::Relaxed) {
            return;
        }
        let http = HttpRecord {
            exchange: self.exchange,
            method: &self.method,
            uri: &self.uri,
            status: None,
            headers: &self.headers,
            event: false,
            event_id: None,
        };
        self.emit(self.request, self.session.as_deref(), http, body);
    }

    /// Begins to log the response. Its body is passed to the [`BodyLog`] as it arrives.
    pub fn response(self: Arc<Self>, status: StatusCode, headers: &HeaderMap) -> BodyLog {
        let redactor = &self.connection.log.redactor;
        let session = headers.get(&MCP_SESSION_ID).map(|id| redactor.tag(id.as_bytes()));
        let is_stream = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
        let headers = redactor.headers(headers);
        let mut log = BodyLog { exchange: self, status, headers, session, content: LoggedBody::Ended };
        log.content = if is_stream {
            log.emit(b"");
            log.headers.clear();
            LoggedBody::Events(Box::new(Decoder::new(DecoderLimits::default())))
        } else {
            LoggedBody::Whole(Vec::new())
        };
        log
    }

    fn emit(&self, direction: Direction, session: Option<&str>, http: HttpRecord<'_>, body: &[u8]) {
        let emit = |payload: Payload<'_>| self.connection.emit(direction, session, Some(http), payload);
        if body.is_empty() {
            emit(Payload::Empty)
        } else {
            self.connection.with_payload(direction, body, emit)
        }
    }
}

/// The log of the body of a response.
///
/// Events of a stream are logged as they arrive. Any other body is logged when this is dropped; at most 16 MiB of it are kept.
#[derive(Debug)]
pub struct BodyLog {
    exchange: Arc<HttpExchangeLog>,
    status: StatusCode,
    /// The redacted headers of the response.
    headers: HeaderMap,
    session: Option<String>,
    content: LoggedBody,
}

/// The body so far.
#[derive(Debug)]
enum LoggedBody {
    Whole(Vec<u8>),
    TooLong,
    Events(Box<Decoder>),
    Ended,
}

/// The limit of a body that is logged.
const MAX_BODY: usize = 16 << 20;

impl BodyLog {
    /// Logs a chunk of the body.
    pub fn data(&mut self, mut data: &[u8]) {
        match &mut self.content {
            LoggedBody::Whole(body) if body.len() + data.len() > MAX_BODY => {
                self.content = LoggedBody::TooLong
            }
            LoggedBody::Whole(body) => body.extend_from_slice(data),
            LoggedBody::Events(decoder) => {
                let mut events = Vec::new();
                let failed = loop {
                    match decoder.next(&mut data) {
                        Ok(Some(event)) => events.push(event),
                        Ok(None) => break false,
                        Err(_) => break true,
                    }
                };
                events.iter().for_each(|event| self.event(event));
                if failed {
                    self.content = LoggedBody::TooLong;
                }
            }
            LoggedBody::TooLong | LoggedBody::Ended => {}
        }
    }

    fn event(&self, event: &Event) {
        // An event without data sets an id or the time until the next connection.
        if event.data.is_empty() {
            return;
        }
        let http = HttpRecord { event: true, event_id: event.id.as_deref(), ..self.http() };
        let is_message = event.name.as_deref().is_none_or(|name| name == "message");
        if is_message {
            return self.exchange.emit(self.direction(), self.session(), http, event.data.as_bytes());
        }
        // The endpoint of a session of the oldest revision: a URL with the id of the session.
        let text = self.exchange.connection.log.redactor.url(&event.data);
        self.exchange.connection.emit(self.direction(), self.session(), Some(http), Payload::Text(&text));
    }

    fn emit(&self, body: &[u8]) {
        self.exchange.emit(self.direction(), self.session(), self.http(), body);
    }

    fn direction(&self) -> Direction {
        match self.exchange.request {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref().or(self.exchange.session.as_deref())
    }

    fn http(&self) -> HttpRecord<'_> {
        HttpRecord {
            exchange: self.exchange.exchange,
            method: &self.exchange.method,
            uri: &self.exchange.uri,
            status: Some(self.status),
            headers: &self.headers,
            event: false,
            event_id: None,
        }
    }
}

impl Drop for BodyLog {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.content, LoggedBody::Ended) {
            LoggedBody::Whole(body) => self.emit(&body),
            LoggedBody::TooLong => {
                let (direction, http) = (self.direction(), Some(self.http()));
                self.exchange.connection.emit(direction, self.session(), http, Payload::Oversized);
            }
            LoggedBody::Events(_) | LoggedBody::Ended => {}
        }
    }
}
