//! Calls of a tool: requests with what authorizes them, and results.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use pintle::types::{
    JsonObject,
    schema::{CallToolResult, ResourceContents},
};
use pintle_oauth::client::BearerTokens;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    answer::{self, Answer},
    client::ApiClient,
    pages::{self, NextPage, Page},
    request::{AppliedSecret, Redaction},
    tool::ApiTool,
};

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

/// The pages of an answer that were read: as one, with the list of all.
struct PagesRead {
    value: Value,
    next: Option<NextPage>,
    bytes: usize,
    /// The arguments of the last page.
    arguments: JsonObject,
    /// Why there are no more of them.
    fault: Option<String>,
}

/// Why a call has no result.
pub(crate) enum CallError {
    Arguments(String),
    Failed(String),
}

impl ApiCall<'_> {
    /// Reads what a URI stands for. The error is for the reader.
    pub(crate) async fn contents(
        &self,
        arguments: &JsonObject,
        uri: &str,
    ) -> Result<ResourceContents, CallError> {
        let answer = self.send(self.request(arguments)?).await.map_err(CallError::Failed)?;
        Ok(answer::contents(&answer, &self.tool.answer, uri))
    }

    /// Makes the request of a call.
    fn request(&self, arguments: &JsonObject) -> Result<Request<Bytes>, CallError> {
        let Self { tool, client, caller } = self;
        tool.check(arguments).map_err(CallError::Arguments)?;
        let request = tool.plan.request(arguments, &client.headers).map_err(CallError::Arguments)?;
        if caller.is_some() && !tool.plan.is_at_base {
            let origin = &tool.plan.base.origin;
            return Err(CallError::Failed(format!(
                "the operation is at `{origin}`, which the token of the caller is not for; use another tool"
            )));
        }
        Ok(request)
    }

    /// Calls the API. The error is for the model.
    pub(crate) async fn result(&self, arguments: &JsonObject) -> Result<CallToolResult, CallError> {
        let Self { tool, client, .. } = self;
        let request = self.request(arguments)?;
        let uri = format!("{}{}", tool.plan.base.origin, request.uri().path());
        let (sent, begun) = (request.uri().clone(), Instant::now());
        let answer = self.send(request).await.map_err(CallError::Failed)?;
        let value = match answer::read(&answer, &tool.answer, &uri) {
            Answer::Other(result) => return Ok(result),
            Answer::Json(value) => value,
        };
        if tool.plan.method != Method::GET {
            return Ok(answer::structured(value, &tool.answer, Vec::new()));
        }
        let next = Page { tool, arguments, uri: &sent, headers: answer.headers(), value: &value }.next();
        let mut pages =
            PagesRead { value, next, bytes: answer.body().len(), arguments: arguments.clone(), fault: None };
        for _ in 1..client.pages {
            let left = client.timeout.saturating_sub(begun.elapsed());
            let read = tokio::time::timeout(left, self.add_page(&mut pages)).await;
            match read.unwrap_or_else(|_| Err("there was no time for it".to_owned())) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => {
                    pages.fault = Some(format!("the next page is not here: {reason}"));
                    break;
                }
            }
        }
        let next = pages.next.as_ref().map(NextPage::describe);
        Ok(answer::structured(pages.value, &tool.answer, pages.fault.into_iter().chain(next).collect()))
    }

    /// Reads the next page, if there is one and it fits. Returns whether it did.
    async fn add_page(&self, pages: &mut PagesRead) -> Result<bool, String> {
        let Self { tool, client, .. } = self;
        let (Some(next), Some(list)) = (&pages.next, pages::list(&pages.value)) else { return Ok(false) };
        let mut arguments = pages.arguments.clone();
        if let NextPage::Arguments(changed) | NextPage::Perhaps(changed) = next {
            arguments.extend(changed.iter().cloned());
            tool.check(&arguments)?;
        }
        let mut request = tool.plan.request(&arguments, &client.headers)?;
        if let NextPage::Link(link) = next {
            *request.uri_mut() = tool.plan.with_query_secrets(link).ok_or("its URL is none")?;
        }
        let uri = request.uri().clone();
        let answer = self.send(request).await?;
        let bytes = pages.bytes.saturating_add(answer.body().len());
        if bytes > client.max_answer {
            return Err(format!("all would have more than {} bytes", client.max_answer));
        }
        let Answer::Json(mut value) = answer::read(&answer, &tool.answer, "") else { return Ok(false) };
        let page = Page { tool, arguments: &arguments, uri: &uri, headers: answer.headers(), value: &value };
        // Who has said where the next page is says it again.
        let is_guessed = |next: &NextPage| matches!(next, NextPage::Perhaps(_));
        let before = pages.next.as_ref();
        let is_next =
            |next: &NextPage| before != Some(next) && (before.is_some_and(is_guessed) || !is_guessed(next));
        let next = page.next().filter(is_next);
        let (Some(Value::Array(items)), Some(Value::Array(added))) =
            (pages.value.pointer_mut(&list), value.pointer_mut(&list))
        else {
            return Ok(false);
        };
        // All but the list is that of the last page.
        items.append(added);
        *added = std::mem::take(items);
        *pages = PagesRead { value, next, bytes, arguments, fault: None };
        Ok(true)
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
        let own = tool.plan.secrets.iter().map(AppliedSecret::text);
        Err(Redaction::of(values.chain(own)).apply(&reason))
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
