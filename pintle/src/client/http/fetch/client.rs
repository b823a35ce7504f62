//! One request up to the head of its response, including redirects, challenges and retries.

use std::{borrow::Cow, error::Error as StdError, fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE},
    response::Parts,
};
use pintle_proto::http::{Probed, redirect};
use pintle_types::{Message, RpcError, method};
use tokio::time::sleep;

use super::{
    auth::{AnyAuth, Challenge, Outgoing},
    retry::Retry,
};
use crate::{
    client::http::connect::{
        Address, AnswerLimit, Body, BoxError, ConnectError, ExchangeKind, HttpSender, Limits, ResponseBody,
    },
    excerpt::excerpt,
    message_log::{ConnectionLog, Direction, HttpExchangeLog},
    transport::{DeadlinePause, DeadlinePauses, Delivery, Failed, PushDemand, PushState, open_files},
};

/// How much of a refusal is read: enough for an error of the protocol, and for the connection to be used again.
const REFUSAL: usize = 64 << 10;
/// How long is waited for it.
const REFUSAL_WAIT: Duration = Duration::from_secs(5);
/// How many letters of it are shown.
const SHOWN: usize = 300;

/// An HTTP client for one server: sends requests with authorization, retries and limits.
pub(in crate::client::http) struct HttpClient {
    pub(in crate::client::http) address: Address,
    pub(in crate::client::http) sender: HttpSender,
    /// Headers of every request.
    pub(in crate::client::http) headers: HeaderMap,
    pub(in crate::client::http) auth: Option<Arc<dyn AnyAuth>>,
    pub(in crate::client::http) limits: Limits,
    /// Limit of a response body.
    pub(in crate::client::http) answer: AnswerLimit,
    pub(in crate::client::http) retry: Retry,
    pub(in crate::client::http) deadline_pauses: DeadlinePauses,
    /// Whether the stream of the session is open.
    pub(in crate::client::http) push_state: PushState,
    pub(in crate::client::http) push_demand: PushDemand,
    /// The error of an invalid setting.
    pub(in crate::client::http) fault: Option<String>,
    pub(in crate::client::http) message_log: Option<ConnectionLog>,
}

/// An HTTP request to be sent.
#[derive(Clone, Debug)]
pub(in crate::client::http) struct PreparedRequest {
    pub(in crate::client::http) method: Method,
    pub(in crate::client::http) kind: ExchangeKind,
    pub(in crate::client::http) address: Address,
    /// The headers, without those that mirror arguments.
    pub(in crate::client::http) headers: Arc<HeaderMap>,
    pub(in crate::client::http) mirrored: Option<Box<HeaderMap>>,
    pub(in crate::client::http) body: Bytes,
    /// The method of the message, for errors.
    pub(in crate::client::http) what: Cow<'static, str>,
}

/// The state of a request over several attempts.
struct Progress {
    /// The address of the next attempt.
    address: Address,
    redirects: u32,
    challenges: u32,
    retries: u32,
}

impl Progress {
    fn new(address: Address) -> Self {
        Self { address, redirects: 0, challenges: 0, retries: 0 }
    }
}

/// The step after an attempt.
enum FollowUp {
    /// The response is final.
    Done(Response<ResponseBody>),
    /// Try again.
    Again,
    /// Try again after a delay, during which deadlines may be paused.
    Wait(Duration, Option<DeadlinePause>),
}

impl HttpClient {
    /// Sends a request and returns the response once its head is complete. The response may be an error.
    ///
    /// Follows redirects, answers challenges, and retries what may be retried.
    pub(in crate::client::http) async fn fetch(
        &self,
        ask: &PreparedRequest,
    ) -> Result<Response<ResponseBody>, Failed> {
        if let Some(fault) = &self.fault {
            return Err(Failed::new(fault.clone()).undelivered());
        }
        let mut progress = Progress::new(ask.address.clone());
        loop {
            let authorization = match &self.auth {
                Some(auth) => Some(self.authorize(&**auth, ask, &progress.address).await?),
                None => None,
            };
            let next = match self.send(ask, &progress.address, authorization.as_ref()).await {
                Ok(answer) => {
                    self.check_head(ask, &progress.address, answer.headers())?;
                    if answer.status().is_success() {
                        return Ok(answer);
                    }
                    // Boxed because it is rare: the future of every call would be larger.
                    Box::pin(self.follow_up(ask, &mut progress, authorization.as_ref(), answer)).await?
                }
                Err(error) => self.unsent(ask, &mut progress, &*error)?,
            };
            match next {
                FollowUp::Done(answer) => return Ok(answer),
                FollowUp::Again => {}
                FollowUp::Wait(wait, _pause) => Box::pin(sleep(wait)).await,
            }
        }
    }

    /// Sends the request once.
    async fn send(
        &self,
        ask: &PreparedRequest,
        to: &Address,
        authorization: Option<&HeaderMap>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        // The request is built where it is sent: it is large, and would be moved all the way.
        let make = || self.request(ask, to, authorization);
        if let Some(log) = &self.message_log {
            return Box::pin(self.send_logged(log, to, ask.kind, make())).await;
        }
        self.send_request(to, ask.kind, make).await
    }

    /// Sends a request once, and logs it and its response.
    async fn send_logged(
        &self,
        log: &ConnectionLog,
        to: &Address,
        kind: ExchangeKind,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let (method, uri) = (request.method().clone(), to.uri.to_string());
        let exchange =
            Arc::new(HttpExchangeLog::new(log.clone(), Direction::Out, method, &uri, request.headers()));
        exchange.request(request.body().bytes());
        let (head, body) = self.send_request(to, kind, || request.clone()).await?.into_parts();
        let log = exchange.response(head.status, &head.headers);
        Ok(Response::from_parts(head, body.logged(log)))
    }

    async fn send_request(
        &self,
        to: &Address,
        kind: ExchangeKind,
        make: impl Fn() -> Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        match &self.sender {
            HttpSender::Ours(pool) => pool.fetch(to, kind, make).await,
            HttpSender::Theirs(client) => {
                let mut request = make();
                *request.uri_mut() = to.uri.clone();
                client.fetch(request).await
            }
        }
    }

    /// Returns the step after a request without response: another attempt, if the server cannot have received it.
    fn unsent(
        &self,
        ask: &PreparedRequest,
        progress: &mut Progress,
        error: &(dyn StdError + 'static),
    ) -> Result<FollowUp, Failed> {
        let never = never_arrived(error);
        if !never || progress.retries >= self.retry.requests || is_hopeless(error) {
            return Err(unreached(&progress.address, &ask.what, error, never));
        }
        let wait = self.retry.wait(progress.retries);
        progress.retries += 1;
        Ok(FollowUp::Wait(wait, None))
    }

    fn check_head(
        &self,
        ask: &PreparedRequest,
        address: &Address,
        headers: &HeaderMap,
    ) -> Result<(), Failed> {
        let limit = self.limits.head;
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if bytes > limit {
            return Err(Failed::new(format!(
                "the head of the answer of `{address}` to `{}` is longer than {limit} bytes: raise the limit `head`",
                ask.what
            )));
        }
        Ok(())
    }

    /// Returns the step after an unsuccessful response: a redirect, an answered challenge, a later attempt, or none.
    async fn follow_up(
        &self,
        ask: &PreparedRequest,
        progress: &mut Progress,
        authorization: Option<&HeaderMap>,
        answer: Response<ResponseBody>,
    ) -> Result<FollowUp, Failed> {
        let (head, body) = answer.into_parts();
        let next = if self.redirected(progress, &head)?
            || self.challenged(ask, progress, authorization, &head).await?
        {
            FollowUp::Again
        } else if let Some(wait) = self.retry_after(progress, &head) {
            // While a connection is opened, the wait that the server asks for must not count as silence: the client would
            // ask again in another way, and too early.
            let opens = matches!(&*ask.what, method::SERVER_DISCOVER | method::INITIALIZE);
            FollowUp::Wait(wait, opens.then(|| self.deadline_pauses.pause()))
        } else {
            return Ok(FollowUp::Done(Response::from_parts(head, body)));
        };
        drain(body).await;
        Ok(next)
    }

    /// Follows a redirect, if the response is one.
    fn redirected(&self, progress: &mut Progress, head: &Parts) -> Result<bool, Failed> {
        let Some(location) = head.headers.get(LOCATION).filter(|_| head.status.is_redirection()) else {
            return Ok(false);
        };
        let address = &progress.address;
        let to =
            redirect(head.status, &address.uri, location.to_str().unwrap_or_default()).map_err(|bad| {
                let status = head.status.as_u16();
                let mut failed = Failed::new(format!("`{address}` answered with status {status}: {bad}"));
                failed.status = Some(status);
                failed.undelivered()
            })?;
        let limit = self.limits.redirects;
        if progress.redirects >= limit {
            let message =
                format!("`{address}` was reached by more than {limit} redirects: connect to where they lead");
            return Err(Failed::new(message).undelivered());
        }
        progress.redirects += 1;
        progress.address = Address::of(to);
        Ok(true)
    }

    /// Has a challenge answered, if the response is one. Returns whether the request is to be sent again.
    async fn challenged(
        &self,
        ask: &PreparedRequest,
        progress: &mut Progress,
        authorization: Option<&HeaderMap>,
        head: &Parts,
    ) -> Result<bool, Failed> {
        let (Some(auth), Some(sent)) = (&self.auth, authorization) else { return Ok(false) };
        if progress.challenges >= self.limits.challenges
            || Probed::of(head.status, &head.headers) != Probed::Challenged
        {
            return Ok(false);
        }
        progress.challenges += 1;
        let challenge = Challenge {
            method: &ask.method,
            url: &progress.address.uri,
            status: head.status.as_u16(),
            headers: &head.headers,
            sent,
            tries: progress.challenges,
        };
        let _pause = self.deadline_pauses.pause();
        let answered = auth.challenged(challenge).await;
        answered.map_err(|error| unauthorized(&progress.address, &error, Some(head.status)))
    }

    /// How long to wait before the next attempt, if the server asks for one and attempts are left.
    fn retry_after(&self, progress: &mut Progress, head: &Parts) -> Option<Duration> {
        if progress.retries >= self.retry.requests {
            return None;
        }
        let wait = come_back(head, self.retry.max_wait)?;
        progress.retries += 1;
        Some(wait)
    }

    /// Returns these headers together with those of every request, including those that a connection of the pool would add,
    /// so that the map does not grow later (see `bench/LEDGER.md`).
    pub(in crate::client::http) fn with_usual(
        &self,
        headers: &HeaderMap,
        to: &Address,
        has_body: bool,
    ) -> HeaderMap {
        let mut all = self.headers.clone();
        for (name, value) in headers {
            all.insert(name, value.clone());
        }
        // No encoding is decoded.
        all.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        all.entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("pintle/", env!("CARGO_PKG_VERSION"))));
        if let HttpSender::Ours(_) = self.sender {
            all.entry(HOST).or_insert_with(|| to.host.clone());
            if has_body {
                // Each has its own.
                all.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        all
    }

    /// Returns the authorization headers of a request.
    async fn authorize(
        &self,
        auth: &dyn AnyAuth,
        ask: &PreparedRequest,
        to: &Address,
    ) -> Result<HeaderMap, Failed> {
        let _pause = self.deadline_pauses.pause();
        let request = Outgoing { method: &ask.method, url: &to.uri, body: &ask.body };
        let given = auth.authorize(request).await;
        given.map_err(|error| unauthorized(&ask.address, &error, None))
    }

    /// Builds the request, without its address.
    fn request(&self, ask: &PreparedRequest, to: &Address, authorized: Option<&HeaderMap>) -> Request<Body> {
        let mut request = Request::new(Body::from(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        let headers = request.headers_mut();
        *headers = HeaderMap::clone(&ask.headers);
        if let Some(length) = headers.get_mut(CONTENT_LENGTH) {
            *length = ask.body.len().into();
        }
        if !to.is(&ask.address) && !self.headers.contains_key(HOST) {
            headers.remove(HOST);
        }
        for (name, value) in ask.mirrored.as_deref().into_iter().chain(authorized).flatten() {
            headers.insert(name, value.clone());
        }
        request
    }

    /// Reads an error response.
    pub(in crate::client::http) async fn refusal(
        &self,
        ask: &PreparedRequest,
        head: &Parts,
        body: ResponseBody,
    ) -> Failed {
        let status = head.status;
        let text = body.start(REFUSAL, REFUSAL_WAIT).await;
        let error = protocol_error(&text);
        let reason = match &error {
            Some(error) => Some(excerpt(&error.to_string(), SHOWN)),
            None if is_text(head) => Some(excerpt(&String::from_utf8_lossy(&text), SHOWN)),
            None => None,
        };
        let reason = reason.filter(|reason| !reason.is_empty());
        let message = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let advice = match status {
            // It has said more than we could.
            StatusCode::FORBIDDEN if reason.is_some() && !head.headers.contains_key(WWW_AUTHENTICATE) => "",
            _ => advice(status, &head.headers, self.auth.is_some()),
        };
        let PreparedRequest { address, what, .. } = ask;
        let message =
            format!("`{address}` answered `{what}` with status {}{message}{advice}", status.as_u16());
        Failed {
            request: None,
            status: Some(status.as_u16()),
            error,
            reason: reason.map(Into::into),
            probed: Probed::of(status, &head.headers),
            delivery: if status.is_client_error() { Delivery::Never } else { Delivery::Maybe },
            is_local: false,
            is_too_long: false,
            message: message.into(),
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Reads and discards a body, so that the connection can be reused.
pub(in crate::client::http) async fn drain(body: ResponseBody) {
    let _ = body.collect(REFUSAL).await;
}

/// The text of what went wrong first: the outer ones only say that something did.
pub(in crate::client::http) fn cause(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Whether nothing can have arrived, because there was no connection.
fn never_arrived(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|error| {
        let connect = error.is::<ConnectError>();
        let refused = error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::Unsupported)
        });
        connect || refused
    })
}

fn is_hopeless(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|error| {
        error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::Unsupported)
    })
}

fn unreached(address: &Address, what: &str, error: &(dyn StdError + 'static), never: bool) -> Failed {
    let too_many = chain(error)
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .find(|error| open_files::are_exhausted(error));
    if let Some(error) = too_many.filter(|_| never) {
        let message = format!("`{address}` was not connected to: {}", open_files::explanation(error));
        return Failed { is_local: true, ..Failed::new(message).undelivered() };
    }
    let cause = cause(error);
    if never {
        let message = format!(
            "`{address}` could not be reached: {cause}: check the address, and that the server is running"
        );
        return Failed::new(message).undelivered();
    }
    Failed::new(format!(
        "`{address}` broke off before it answered `{what}`: {cause}: the server may have carried it out all the same"
    ))
}

fn unauthorized(address: &Address, error: &crate::Error, status: Option<StatusCode>) -> Failed {
    let mut failed = Failed::new(format!("`{address}` could not be authorized for: {error}")).undelivered();
    failed.status = status.map(|status| status.as_u16());
    failed.probed = Probed::Challenged;
    failed
}

/// Returns the delay of `Retry-After`, if there is one and it is not too long.
fn come_back(head: &Parts, max_wait: Duration) -> Option<Duration> {
    if !matches!(head.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = head.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= max_wait)
}

fn protocol_error(body: &[u8]) -> Option<RpcError> {
    match Message::parse(body) {
        Ok(Message::Response(response)) => response.result.err(),
        _ => None,
    }
}

fn is_text(head: &Parts) -> bool {
    let kind = head.headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let Some(kind) = kind else { return true };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // A page is for browsers.
    (kind.starts_with("text/") && kind != "text/html") || kind.ends_with("/json") || kind.ends_with("+json")
}

fn advice(status: StatusCode, headers: &HeaderMap, has_auth: bool) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED if has_auth => "; what it was authorized with was not accepted",
        StatusCode::UNAUTHORIZED => "; authorize with `Http::bearer` or `Http::auth`",
        StatusCode::FORBIDDEN if headers.contains_key(WWW_AUTHENTICATE) => {
            "; what it was authorized with does not allow this"
        }
        StatusCode::FORBIDDEN => "; it does not allow this client to do that",
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            "; check that the URL is that of an MCP endpoint"
        }
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "; send less at once",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "; try again later",
        status if status.is_server_error() => "; look at the server's log",
        _ => "",
    }
}
