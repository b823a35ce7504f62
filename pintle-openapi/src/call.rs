//! Calls of a tool: requests with what authorizes them, and results.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use pintle::types::{JsonObject, schema::CallToolResult};
use pintle_oauth::client::BearerTokens;

use crate::{answer, client::ApiClient, request::redact_secrets, tool::ApiTool};

/// The advice for a call on behalf of a caller that the API refuses for a lack of rights.
const REFUSED: &str =
    "the token of the caller was exchanged for one that the API refuses; its owner needs rights there";

/// A call of a tool.
pub(crate) struct ApiCall<'a> {
    pub(crate) tool: &'a ApiTool,
    pub(crate) client: &'a ApiClient,
    /// The tokens of the caller, if requests are on its behalf.
    pub(crate) caller: Option<&'a BearerTokens>,
}

/// Why a call has no result.
pub(crate) enum CallError {
    Arguments(String),
    Failed(String),
}

impl ApiCall<'_> {
    /// Calls the API. The error is for the model.
    pub(crate) async fn result(&self, arguments: &JsonObject) -> Result<CallToolResult, CallError> {
        let Self { tool, client, caller } = self;
        tool.check(arguments).map_err(CallError::Arguments)?;
        let request = tool.plan.request(arguments, &client.headers).map_err(CallError::Arguments)?;
        if caller.is_some() && !tool.plan.is_at_base {
            let origin = &tool.plan.base.origin;
            return Err(CallError::Failed(format!(
                "the operation is at `{origin}`, which the token of the caller is not for; use another tool"
            )));
        }
        let uri = format!("{}{}", tool.plan.base.origin, request.uri().path());
        let answer = self.send(request).await.map_err(CallError::Failed)?;
        Ok(answer::result(answer, tool, &uri))
    }

    /// Sends a request, and returns the answer if its status is 2xx.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let Self { tool, client, caller } = self;
        let (answer, token) = match caller.or(tool.plan.tokens.as_ref()) {
            Some(tokens) => self.authorized(tokens, &request).await,
            None => (client.send(&tool.plan.base, request).await, None),
        };
        let reason = match answer {
            Ok(answer) if answer.status().is_success() => return Ok(answer),
            Ok(answer) if caller.is_some() => answer::failure(&answer, Some(REFUSED)),
            Ok(answer) => answer::failure(&answer, tool.hint.as_deref()),
            Err(reason) => reason,
        };
        // What the program sends with all requests may be secret, too.
        let values = client.headers.values().chain(&token).filter_map(|value| value.to_str().ok());
        let values = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(value));
        let reason = redact_secrets(values, &reason);
        Err(tool.plan.secrets.iter().fold(reason, |text, secret| secret.redact(&text)))
    }

    /// Sends a request with a token, and once more with a new one if that is refused. Returns the last of them, too.
    async fn authorized(
        &self,
        tokens: &BearerTokens,
        request: &Request<Bytes>,
    ) -> (Result<Response<Bytes>, String>, Option<HeaderValue>) {
        let mut is_again = false;
        loop {
            let header = match tokens.header().await {
                Ok(header) => header,
                Err(error) => return (Err(format!("there is no token for the request: {error}")), None),
            };
            let mut request = request.clone();
            request.headers_mut().insert(AUTHORIZATION, header.clone());
            let answer = self.client.send(&self.tool.plan.base, request).await;
            let is_refused = answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED);
            if is_refused {
                tokens.discard(&header);
            }
            if !is_refused || is_again {
                return (answer, Some(header));
            }
            is_again = true;
        }
    }
}
