//! A reverse proxy in front of a server at a URL.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
    header::{self, CONNECTION},
    uri::PathAndQuery,
};
use pintle::{
    client::http::{Limits, Requests, ResponseStream},
    message_log::{ConnectionLog, Direction, HttpExchangeLog, Side},
    proto::http::Refusal,
    server::http::{BodyLimits, ReadBodyError, RequestBody, read_body},
    transport::TransportKind,
    types::RpcError,
};

use crate::{
    failure::{Exit, Failure},
    listen::{ListenArgs, ServedBody, refused},
    output::Output,
    recording::{RecordArgs, Recorder},
    signals::{SignalPolicy, interrupted, listen as listen_for_signals},
    targets::LaunchedUrl,
};

/// Where the proxy listens if nothing else is given.
const ADDRESS: &str = "127.0.0.1:8001";
/// How long a server may take to begin its response. A client gives up before.
const HEAD_WAIT: Duration = Duration::from_secs(3600);

/// Headers between two neighbours, which are not passed on.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The server that requests are passed on to.
struct Upstream {
    /// The URL of the server, with its query.
    url: Uri,
    /// The headers of its entry, for clients that do not send them.
    headers: HeaderMap,
    requests: Requests,
    log: ConnectionLog,
}

/// Serves until the command is interrupted.
pub(super) async fn run(
    remote: &LaunchedUrl,
    listen: Option<String>,
    allowed: &ListenArgs,
    record: &RecordArgs,
    output: &Output,
) -> Result<(), Failure> {
    let url = url_of(&remote.url)?;
    let headers = remote.header_map()?;
    let address = listen.as_deref().unwrap_or(ADDRESS);
    let listening = allowed.listen(address, "tap").await?;
    if listening.is_open_to_all() && !headers.is_empty() {
        let message =
            "anybody could use the server with the headers of its entry: leave out `--insecure-no-auth`";
        return Err(Failure::usage(message, "pintle tap --help"));
    }
    let recorder = Recorder::start(record, output)?;
    listening.announce(url.path(), output)?;
    let mut limits = Limits::default();
    limits.head_wait = HEAD_WAIT;
    let upstream = Arc::new(Upstream {
        url,
        headers,
        requests: Requests::new().limits(limits),
        log: ConnectionLog::new(&recorder.log(), Side::Client, TransportKind::Http, None),
    });
    listen_for_signals(SignalPolicy { is_handled: false, drains: false, ends_on_hangup: true });
    tokio::select! {
        biased;
        () = interrupted() => Err(Failure::silent(Exit::Interrupted)),
        served = listening.serve(move |request| upstream.clone().answer(request), output) => served,
    }
}

fn url_of(url: &str) -> Result<Uri, Failure> {
    let not_a_url = |message: String| {
        Failure::usage(message, "pintle tap https://example.com/mcp --listen 127.0.0.1:8001")
    };
    let uri: Uri = url.parse().map_err(|error| not_a_url(format!("the URL cannot be read: {error}")))?;
    match uri.authority() {
        Some(authority) if !authority.as_str().contains('@') => Ok(uri),
        _ => Err(not_a_url("the URL has a user or a password: clients send them in a header".to_owned())),
    }
}

impl Upstream {
    async fn answer(self: Arc<Self>, request: Request<RequestBody>) -> Response<ServedBody> {
        let (head, body) = request.into_parts();
        let body = match read_body(body, &BodyLimits::default()).await {
            Ok(body) => body,
            Err(ReadBodyError::Refused(refusal)) => return refused(&refusal),
            Err(ReadBodyError::Broken) => return refused(&Refusal::too_slow()),
        };
        let target = head.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        let exchange = HttpExchangeLog::new(
            self.log.clone(),
            Direction::Out,
            head.method.clone(),
            &target,
            &head.headers,
        );
        let exchange = Arc::new(exchange);
        exchange.request(&body);
        match self.pass_on(head, body).await {
            Ok(response) => {
                let (mut head, body) = response.into_parts();
                let log = exchange.response(head.status, &head.headers);
                remove_hop_by_hop(&mut head.headers);
                Response::from_parts(head, ServedBody::Passed(Box::new((body, log))))
            }
            Err(message) => {
                let refusal = Refusal::new(StatusCode::BAD_GATEWAY, RpcError::internal(message));
                let response = refused(&refusal);
                exchange.response(response.status(), response.headers()).data(refusal.body(None).as_bytes());
                response
            }
        }
    }

    async fn pass_on(
        &self,
        head: http::request::Parts,
        body: Bytes,
    ) -> Result<Response<ResponseStream>, String> {
        let mut request = Request::new(body);
        *request.method_mut() = head.method;
        *request.uri_mut() = self.url_for(&head.uri).ok_or("the target of the request is not a path")?;
        *request.headers_mut() = head.headers;
        let headers = request.headers_mut();
        remove_hop_by_hop(headers);
        // The host is that of the server, and what is compressed could not be recorded.
        headers.remove(header::HOST);
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.headers {
            if !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
        self.requests.stream(request).await.map_err(|error| error.to_string())
    }

    /// Returns the URL at the server for the target of a request. The path of the endpoint gets the query of the URL that was typed.
    fn url_for(&self, target: &Uri) -> Option<Uri> {
        let mut parts = self.url.clone().into_parts();
        if target.query().is_some() || target.path() != self.url.path() {
            parts.path_and_query = Some(target.path_and_query()?.clone());
        }
        Uri::from_parts(parts).ok()
    }
}

/// Removes the headers that are not for the next neighbour.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_between_neighbours_stay_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "Basic x"),
            ("authorization", "Bearer x"),
            ("mcp-session-id", "s"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        remove_hop_by_hop(&mut headers);
        assert_eq!(
            headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["authorization", "mcp-session-id"]
        );
    }

    #[test]
    fn a_url_has_no_password() {
        for (typed, message) in [
            ("https://u:p@example.com/mcp", "the URL has a user or a password"),
            ("http://[x", "the URL cannot be read"),
        ] {
            let refused = url_of(typed).unwrap_err().message;
            assert!(refused.starts_with(message), "{refused}");
        }
    }
}
