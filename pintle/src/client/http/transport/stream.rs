//! Event streams: read to their end, and resumed where they broke.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use pintle_proto::{http::Probed, sse::Decoder};
use pintle_types::RequestId;
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::{sleep, timeout};

use super::{
    exchange::ContentKind,
    session::{HttpSession, TransportEvent},
};
use crate::{
    client::http::{
        connect::{ExchangeKind, ResponseBody},
        fetch::{PreparedRequest, cause, drain},
    },
    transport::{Delivery, Failed, StreamPause},
};

/// Reads one stream, over however many connections it takes.
pub(in crate::client::http) struct EventReader {
    line: Arc<HttpSession>,
    /// The one request that this is the stream of.
    request: Option<RequestId>,
    decoder: Decoder,
    /// How long the server wants us to wait before we come back.
    retry: Option<Duration>,
    /// Whether anything came since the last connection.
    news: bool,
}

/// How long a stream may stay open when all that it is for has come.
const GRACE: Duration = Duration::from_secs(1);

/// How a connection of a stream ended.
#[derive(Debug)]
pub(in crate::client::http) enum Rest {
    /// As it should.
    Ended,
    /// In the middle.
    Broken(String),
    /// Because it cannot be read any further. Whether it exceeds a limit.
    Faulty(String, bool),
    /// With the event that names the endpoint of HTTP+SSE: POST is no way to send messages here.
    Endpoint,
}

impl EventReader {
    pub(in crate::client::http) fn new(line: Arc<HttpSession>) -> Self {
        let decoder = Decoder::new(line.wire.answer.sse());
        Self { line, request: None, decoder, retry: None, news: false }
    }

    /// Reads until all requests are answered, and takes the stream up again where it broke before.
    pub(in crate::client::http) async fn read_to_answer(
        &mut self,
        ask: &PreparedRequest,
        mut body: ResponseBody,
        requests: &[RequestId],
        resumable: bool,
    ) -> Result<(), Failed> {
        if let [request] = requests {
            self.request = Some(request.clone());
        }
        let mut requests = requests.to_vec();
        let mut failures = 0;
        loop {
            let rest = self.read(body, &mut requests).await;
            if requests.is_empty() {
                return Ok(());
            }
            if matches!(rest, Rest::Endpoint) {
                let mut failed = broken(ask, &rest).undelivered();
                (failed.status, failed.probed) = (Some(405), Probed::Rejected);
                return Err(failed);
            }
            failures = if self.news { 0 } else { failures + 1 };
            let faulty = matches!(rest, Rest::Faulty(..));
            if faulty || !resumable || self.decoder.last_event_id().is_empty() {
                return Err(broken(ask, &rest));
            }
            // A connection that broke is no wish of the server.
            if let (Rest::Ended, Some(request)) = (&rest, &self.request) {
                let wait = self.line.wire.retry.resume_wait(self.retry, failures);
                let pause = StreamPause { request: request.clone(), wait };
                self.line.tell(TransportEvent::Paused(pause)).await;
            }
            body = loop {
                if failures > self.line.wire.retry.resumes {
                    return Err(broken(ask, &rest));
                }
                match self.resume(failures).await {
                    Ok(body) => break body,
                    Err(Some(failed)) => {
                        if failed.status == Some(404) && self.line.has_session() {
                            self.line.tell(TransportEvent::Lost).await;
                        }
                        return Err(failed);
                    }
                    Err(None) => failures += 1,
                }
            };
        }
    }

    /// Reads what comes over one connection.
    pub(in crate::client::http) async fn read(
        &mut self,
        mut body: ResponseBody,
        requests: &mut Vec<RequestId>,
    ) -> Rest {
        self.news = false;
        let asked = !requests.is_empty();
        loop {
            let next = match asked && requests.is_empty() {
                false => body.next().await,
                // Nothing more has to come; the end of the stream lets the connection be used again.
                true => timeout(GRACE, body.next()).await.unwrap_or(None),
            };
            let Some(piece) = next else { return Rest::Ended };
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return Rest::Broken(cause(&*error)),
            };
            let mut piece: &[u8] = &piece;
            loop {
                match self.decoder.next(&mut piece) {
                    Ok(Some(event)) => {
                        if asked && !self.news && event.name.as_deref() == Some("endpoint") {
                            return Rest::Endpoint;
                        }
                        self.news = true;
                        self.retry = event.retry.map(Duration::from_millis).or(self.retry);
                        // An event without data brings an id or a time to wait.
                        let is_message = event.name.as_deref().is_none_or(|name| name == "message");
                        if is_message && !event.data.trim_ascii().is_empty() {
                            strike(requests, &event.data);
                            self.line.pass(Bytes::from(event.data), self.request.clone()).await;
                        }
                    }
                    Ok(None) => break,
                    Err(fault) => {
                        let limit = self.line.wire.answer;
                        return Rest::Faulty(limit.explain(&fault), limit.is_exceeded(&fault));
                    }
                }
            }
        }
    }

    /// Waits, then takes the stream up again. `None` if it is worth trying once more.
    pub(in crate::client::http) async fn resume(
        &mut self,
        failures: u32,
    ) -> Result<ResponseBody, Option<Failed>> {
        sleep(self.line.wire.retry.resume_wait(self.retry, failures)).await;
        self.open().await
    }

    /// Opens a stream, or takes up the one that was open. `None` if it is worth trying once more.
    pub(in crate::client::http) async fn open(&mut self) -> Result<ResponseBody, Option<Failed>> {
        let wire = self.line.wire.clone();
        self.decoder.reconnect();
        let last = Some(self.decoder.last_event_id()).filter(|id| !id.is_empty());
        let mut ask = self.line.listen(last).map_err(|bad| Some(Failed::new(bad.to_string())))?;
        if self.request.is_none() {
            ask.kind = ExchangeKind::Stream;
        }
        let answer = match timeout(wire.limits.head_wait, wire.fetch(&ask)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failed)) => {
                tracing::debug!(%failed, "a stream could not be taken up again");
                return Err(None);
            }
            Err(_) => return Err(None),
        };
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            return match ContentKind::of(&head.headers) {
                ContentKind::Events => Ok(body),
                _ => {
                    drain(body).await;
                    Err(Some(Failed::new(format!(
                        "`{}` answered GET with something that is not an event stream",
                        ask.address
                    ))))
                }
            };
        }
        let again = head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS;
        let failed = wire.refusal(&ask, &head, body).await;
        // The request that this was the stream of had arrived.
        Err((!again).then_some(Failed { error: None, delivery: Delivery::Maybe, ..failed }))
    }

    /// Whether it has something to take up.
    pub(in crate::client::http) fn has_begun(&self) -> bool {
        !self.decoder.last_event_id().is_empty()
    }

    /// Whether anything came over the last connection.
    pub(in crate::client::http) fn had_news(&self) -> bool {
        self.news
    }
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("ended before the answer came"),
            Self::Broken(cause) => write!(f, "broke off: {cause}"),
            Self::Faulty(fault, _) => write!(f, "cannot be read: {fault}"),
            Self::Endpoint => f.write_str("names another endpoint, as HTTP+SSE does"),
        }
    }
}

fn broken(ask: &PreparedRequest, rest: &Rest) -> Failed {
    let PreparedRequest { address, what, .. } = ask;
    let message =
        format!("the stream of `{address}` for `{what}` {rest}: the server may have carried it out");
    Failed { is_too_long: matches!(rest, Rest::Faulty(_, true)), ..Failed::new(message) }
}

/// Strikes out the requests that a message answers. Others parse it; this only looks.
fn strike(requests: &mut Vec<RequestId>, data: &str) {
    #[derive(Deserialize)]
    struct Peek {
        id: Option<RequestId>,
        method: Option<IgnoredAny>,
    }
    if requests.is_empty() {
        return;
    }
    let data = data.strip_prefix('\u{feff}').unwrap_or(data);
    let peeked: Vec<Peek> = match data.trim_ascii_start().starts_with('[') {
        true => serde_json::from_str(data).unwrap_or_default(),
        false => serde_json::from_str(data).ok().into_iter().collect(),
    };
    for Peek { id, method } in peeked {
        if let (Some(id), None) = (id, method) {
            requests.retain(|open| {
                *open != id && (id.as_number().is_none() || open.as_number() != id.as_number())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_distinguished_from_a_question_with_the_same_id() {
        let mut requests: Vec<RequestId> = vec![1.into(), 2.into(), 3.into()];
        for data in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"id":1}}"#,
            r#"{"jsonrpc":"2.0","id":"01","result":{}}"#,
            "nonsense",
        ] {
            strike(&mut requests, data);
        }
        assert_eq!(requests.len(), 3);
        strike(&mut requests, r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}"#);
        assert_eq!(requests, [1.into(), 3.into()]);
        // As the engine takes it too.
        let mut others = requests.clone();
        strike(&mut others, "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}");
        assert_eq!(others, [1.into()]);
        strike(&mut requests, r#" [{"id":3,"result":{}},{"id":1,"result":{}}]"#);
        assert!(requests.is_empty());
    }
}
