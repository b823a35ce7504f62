//! Requests that a call sends to its client, and the functions around them.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use pintle_proto::inputs::AskError;
use pintle_types::{JsonObject, Meta, RawObject, schema::InputRequest};
use serde_json::value::to_raw_value;
use tokio::time::Instant;

use super::Cx;

/// The future of a request to a client.
type OutgoingFuture = Pin<Box<dyn Future<Output = Result<RawObject, AskError>> + Send>>;

/// A function around the requests to clients.
pub(crate) type AroundOutgoing = dyn Fn(OutgoingRequest, OutgoingNext) -> OutgoingFuture + Send + Sync;

/// A request that a call sends to its client, for [`Server::around_outgoing`](crate::Server::around_outgoing).
#[derive(Clone, Debug)]
pub struct OutgoingRequest {
    cx: Cx,
    method: String,
    params: RawObject,
}

impl OutgoingRequest {
    /// Returns the context of the call that sends the request.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Returns the method of the request, such as `elicitation/create`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the parameters of the request, not decoded.
    pub fn params(&self) -> &RawObject {
        &self.params
    }

    /// Replaces the parameters of the request.
    #[must_use]
    pub fn with_params(self, params: RawObject) -> Self {
        Self { params, ..self }
    }

    /// Merges metadata over that of the request.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        let Ok(given) = self.params.decode_member::<JsonObject>("_meta") else { return self };
        let mut merged = given.unwrap_or_default();
        merged.extend(meta.into_object());
        if let Ok(merged) = to_raw_value(&merged) {
            self.params = self.params.with("_meta", &merged);
        }
        self
    }
}

/// The rest of the way of a request to a client.
pub struct OutgoingNext(Box<dyn FnOnce(OutgoingRequest) -> OutgoingFuture + Send>);

impl OutgoingNext {
    fn new(go: impl FnOnce(OutgoingRequest) -> OutgoingFuture + Send + 'static) -> Self {
        Self(Box::new(go))
    }

    /// Goes on, to the next function and in the end to the client. Returns the client's answer.
    ///
    /// # Errors
    ///
    /// The client refuses the request or does not answer in time, or the call is over.
    pub async fn run(self, request: OutgoingRequest) -> Result<RawObject, AskError> {
        (self.0)(request).await
    }
}

impl fmt::Debug for OutgoingNext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutgoingNext")
    }
}

impl Cx {
    /// Sends a request to the client, through the functions around it, and waits for the answer.
    pub(crate) async fn send_request(
        &self,
        key: &str,
        request: InputRequest,
        deadline: (Option<Instant>, Duration),
    ) -> Result<RawObject, AskError> {
        let around = &self.outermost_snapshot().settings.outgoing;
        if around.is_empty() {
            return self.answer(self.sink().ask(key, request).await, deadline).await;
        }
        let unprintable = |error: serde_json::Error| AskError::Unprintable { reason: error.to_string() };
        let params: RawObject = request.params_as().map_err(unprintable)?;
        let (cx, key) = (self.clone(), key.to_owned());
        let send = OutgoingNext::new(move |sent| {
            Box::pin(async move {
                let request = InputRequest::new(sent.method, &sent.params).map_err(unprintable)?;
                cx.answer(cx.sink().ask(&key, request).await, deadline).await
            })
        });
        let next = around
            .iter()
            .cloned()
            .fold(send, |next, function| OutgoingNext::new(move |request| function(request, next)));
        next.run(OutgoingRequest { cx: self.clone(), method: request.method, params }).await
    }

    /// Returns whether functions are around the requests to clients.
    pub(super) fn has_around_outgoing(&self) -> bool {
        !self.outermost_snapshot().settings.outgoing.is_empty()
    }
}
