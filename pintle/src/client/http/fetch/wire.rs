//! One request to the head of its answer: redirects, challenges and tries included.

use std::{borrow::Cow, error::Error as StdError, fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_LENGTH, HOST, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE},
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
    client::http::connect::{Address, Answer, AnswerLimit, Body, Limits, Sender, Unconnected},
    excerpt::excerpt,
    transport::{DeadlinePauses, Delivery, Failed, PushState},
};

/// How much of a refusal is read: enough for an error of the protocol, and for the connection to be used again.
const REFUSAL: usize = 64 << 10;
/// How long is waited for it.
const REFUSAL_WAIT: Duration = Duration::from_secs(5);
/// How many letters of it are shown.
const SHOWN: usize = 300;

/// What requests go through.
pub(in crate::client::http) struct Wire {
    pub(in crate::client::http) address: Address,
    pub(in crate::client::http) sender: Sender,
    /// Sent with every request.
    pub(in crate::client::http) headers: HeaderMap,
    pub(in crate::client::http) auth: Option<Arc<dyn AnyAuth>>,
    pub(in crate::client::http) limits: Limits,
    /// How long an answer may be.
    pub(in crate::client::http) answer: AnswerLimit,
    pub(in crate::client::http) retry: Retry,
    pub(in crate::client::http) deadline_pauses: DeadlinePauses,
    /// Whether the stream of the session is open.
    pub(in crate::client::http) push_state: PushState,
    /// What is wrong with the settings.
    pub(in crate::client::http) fault: Option<String>,
}

/// A request.
#[derive(Clone, Debug)]
pub(in crate::client::http) struct Ask {
    pub(in crate::client::http) method: Method,
    pub(in crate::client::http) address: Address,
    /// Its headers, and those that repeat arguments.
    pub(in crate::client::http) headers: Arc<HeaderMap>,
    pub(in crate::client::http) mirrored: Option<Box<HeaderMap>>,
    pub(in crate::client::http) body: Bytes,
    /// What it is for, in errors: the method of the message.
    pub(in crate::client::http) what: Cow<'static, str>,
}

impl Wire {
    /// Sends a request and returns the head of its answer, which may be a refusal.
    pub(in crate::client::http) async fn fetch(&self, ask: &Ask) -> Result<Response<Answer>, Failed> {
        if let Some(fault) = &self.fault {
            return Err(Failed::new(fault.clone()).undelivered());
        }
        let mut address = ask.address.clone();
        let (mut redirects, mut challenges, mut tries) = (0, 0, 0);
        // What is rare is boxed, so that the future of every call is not larger for it.
        loop {
            let sent = match &self.auth {
                Some(auth) => Some(self.authorize(&**auth, ask, &address).await?),
                None => None,
            };
            // Made where it is sent: it is large, and would be moved all the way.
            let make = || self.request(ask, &address, sent.as_ref());
            let fetched = match &self.sender {
                Sender::Ours(pool) => pool.fetch(&address, make).await,
                Sender::Theirs(client) => {
                    let mut request = make();
                    *request.uri_mut() = address.uri.clone();
                    client.fetch(request).await
                }
            };
            let answer = match fetched {
                Ok(answer) => answer,
                Err(error) => {
                    let never = never_arrived(&*error);
                    if never && tries < self.retry.requests && !is_hopeless(&*error) {
                        Box::pin(sleep(self.retry.wait(tries))).await;
                        tries += 1;
                        continue;
                    }
                    return Err(unreached(&address, &ask.what, &*error, never));
                }
            };
            let most = self.limits.head;
            if answer.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
                > most
            {
                return Err(Failed::new(format!(
                    "the head of the answer of `{address}` to `{}` is longer than {most} bytes: raise the limit `head`",
                    ask.what
                )));
            }
            if answer.status().is_success() {
                return Ok(answer);
            }
            let (head, body) = answer.into_parts();
            if head.status.is_redirection()
                && let Some(location) = head.headers.get(LOCATION)
            {
                let location = location.to_str().unwrap_or_default();
                let to = redirect(head.status, &address.uri, location).map_err(|bad| {
                    let status = head.status.as_u16();
                    let mut failed = Failed::new(format!("`{address}` answered with status {status}: {bad}"));
                    failed.status = Some(status);
                    failed.undelivered()
                })?;
                redirects += 1;
                if redirects > self.limits.redirects {
                    let most = self.limits.redirects;
                    let said = format!(
                        "`{address}` was reached by more than {most} redirects: connect to where they lead"
                    );
                    return Err(Failed::new(said).undelivered());
                }
                Box::pin(drain(body)).await;
                address = Address::of(to);
                continue;
            }
            if let (Some(auth), Some(sent)) = (&self.auth, &sent)
                && challenges < self.limits.challenges
                && Probed::of(head.status, &head.headers) == Probed::Challenged
            {
                challenges += 1;
                let challenge = Challenge {
                    method: &ask.method,
                    url: &address.uri,
                    status: head.status.as_u16(),
                    headers: &head.headers,
                    sent,
                    tries: challenges,
                };
                let _holdup = self.deadline_pauses.pause();
                match auth.challenged(challenge).await {
                    Ok(true) => {
                        Box::pin(drain(body)).await;
                        continue;
                    }
                    Ok(false) => {}
                    Err(error) => return Err(unauthorized(&address, &error, Some(head.status))),
                }
            }
            if tries < self.retry.requests
                && let Some(wait) = come_back(&head, self.retry.longest)
            {
                tries += 1;
                Box::pin(drain(body)).await;
                // While a connection is opened, the time that the server asks for is not that of its answer: who takes it
                // for silence would ask again in another way, and too early.
                let opens = matches!(&*ask.what, method::SERVER_DISCOVER | method::INITIALIZE);
                let _holdup = opens.then(|| self.deadline_pauses.pause());
                Box::pin(sleep(wait)).await;
                continue;
            }
            return Ok(Response::from_parts(head, body));
        }
    }

    /// These headers, and those that every request has. What our own connections would add is there too, so that nothing
    /// has to grow for it. (Measured: 600 instructions less for each call.)
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
        all.entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("pintle/", env!("CARGO_PKG_VERSION"))));
        if let Sender::Ours(_) = self.sender {
            all.entry(HOST).or_insert_with(|| to.host.clone());
            if has_body {
                // Each has its own.
                all.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        all
    }

    /// What a request is authorized with.
    async fn authorize(&self, auth: &dyn AnyAuth, ask: &Ask, to: &Address) -> Result<HeaderMap, Failed> {
        let _holdup = self.deadline_pauses.pause();
        let request = Outgoing { method: &ask.method, url: &to.uri, body: &ask.body };
        let given = auth.authorize(request).await;
        given.map_err(|error| unauthorized(&ask.address, &error, None))
    }

    /// The request, but for its address.
    fn request(&self, ask: &Ask, to: &Address, authorized: Option<&HeaderMap>) -> Request<Body> {
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

    /// What a refusal says.
    pub(in crate::client::http) async fn refusal(&self, ask: &Ask, head: &Parts, body: Answer) -> Failed {
        let status = head.status;
        let text = body.start(REFUSAL, REFUSAL_WAIT).await;
        let error = protocol_error(&text);
        let reason = match &error {
            Some(error) => Some(excerpt(&error.to_string(), SHOWN)),
            None if is_text(head) => Some(excerpt(&String::from_utf8_lossy(&text), SHOWN)),
            None => None,
        };
        let reason = reason.filter(|reason| !reason.is_empty());
        let said = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let advice = match status {
            // It has said more than we could.
            StatusCode::FORBIDDEN if reason.is_some() && !head.headers.contains_key(WWW_AUTHENTICATE) => "",
            _ => advice(status, &head.headers, self.auth.is_some()),
        };
        let Ask { address, what, .. } = ask;
        let said = format!("`{address}` answered `{what}` with status {}{said}{advice}", status.as_u16());
        Failed {
            request: None,
            status: Some(status.as_u16()),
            error,
            reason: reason.map(Into::into),
            probed: Probed::of(status, &head.headers),
            delivery: if status.is_client_error() { Delivery::Never } else { Delivery::Maybe },
            message: said.into(),
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Reads what nobody wants to know, so that the connection can be used again.
pub(in crate::client::http) async fn drain(body: Answer) {
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
        let connect = error.is::<Unconnected>();
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
    let cause = cause(error);
    if never {
        let said = format!(
            "`{address}` could not be reached: {cause}: check the address, and that the server is running"
        );
        return Failed::new(said).undelivered();
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

/// When to come back, if the server says so and it is not too long.
fn come_back(head: &Parts, longest: Duration) -> Option<Duration> {
    if !matches!(head.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = head.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= longest)
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
