//! An HTTP request that is sent for each call.

mod json;
mod url;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request as HttpRequest, Uri,
    header::{ACCEPT, CONTENT_TYPE},
};
use pintle::{
    server::ToolError,
    types::{JsonObject, schema::CallToolResult},
};
use pintle_openapi::{OriginClient, PlannedRequest, url::encode};
use serde_json::Value;
use tokio::time::timeout;

use json::JsonTemplate;
use url::{Pair, UrlTemplate, pairs};

use crate::{CallFault, OutputKind, RequestEntry, SecretValue, ToolEntry, argument::Argument, text::Text};

/// The bytes of an answer, if its entry says nothing.
const MAX_OUTPUT: usize = 1 << 20;
/// The limit of a URL, in bytes.
const MAX_URL: usize = 60 << 10;
/// The limit of the value of a header, in bytes.
const MAX_HEADER: usize = 16 << 10;
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// The request of a tool, checked.
#[derive(Debug)]
pub(crate) struct Request {
    method: Method,
    url: UrlTemplate,
    query: Vec<Pair>,
    headers: Vec<(HeaderName, Text)>,
    /// The names of pairs of the query, encoded, with their secrets.
    secret_query: Vec<(String, SecretValue)>,
    secret_headers: Vec<(HeaderName, SecretValue)>,
    body: Body,
    pick: Option<String>,
    output: OutputKind,
    timeout: Duration,
    client: OriginClient,
}

#[derive(Debug)]
enum Body {
    None,
    Json(JsonTemplate),
    Form(Vec<Pair>),
    Text(Text),
}

impl Request {
    pub(crate) fn new(
        entry: &RequestEntry,
        tool: &ToolEntry,
        arguments: &BTreeMap<String, Argument>,
        timeout: Duration,
    ) -> Result<Self, String> {
        if let Some(setting) = tool.member_of_commands() {
            return Err(format!("`{setting}` is for a tool with a `command`: remove it"));
        }
        let name = entry.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
        let method = METHODS.iter().find(|method| **method == name);
        let method = method.and_then(|method| method.parse::<Method>().ok());
        let method =
            method.ok_or_else(|| format!("`{name}` is no method: write one of {}", METHODS.join(", ")))?;
        let body = Body::read(entry, arguments)?;
        if matches!(method, Method::GET | Method::HEAD) && !matches!(body, Body::None) {
            return Err(format!("a request with `{method}` has no body: add `method = \"POST\"`"));
        }
        if let Some(pick) = &entry.pick {
            if !pick.starts_with('/') {
                return Err(format!("`{pick}` is no JSON pointer: write one such as `/data/items`"));
            }
            if matches!(tool.output, OutputKind::Image(_) | OutputKind::Audio(_)) {
                return Err("`pick` is for an answer in JSON: remove it, or `output`".to_owned());
            }
        }
        let url = UrlTemplate::read(&entry.url, arguments)?;
        let max_answer = tool.max_output.unwrap_or(MAX_OUTPUT);
        let client = OriginClient::new(&url.origin, timeout, max_answer)?;
        let mut request = Self {
            method,
            client: if entry.allow_private { client.allow_private() } else { client },
            url,
            query: Vec::new(),
            headers: Vec::new(),
            secret_query: Vec::new(),
            secret_headers: Vec::new(),
            body,
            pick: entry.pick.clone(),
            output: tool.output.clone(),
            timeout,
        };
        for (name, value) in &entry.query {
            match value {
                SecretValue::Text(text) => request.query.push(Pair::read(name, text, arguments)?),
                source => request.secret_query.push((encode(name), source.clone())),
            }
        }
        for (name, value) in &entry.headers {
            let header = name.parse::<HeaderName>();
            let header = header.ok().filter(OriginClient::sends);
            let header = header.ok_or_else(|| format!("`{name}` is no header that can be set: remove it"))?;
            match value {
                SecretValue::Text(text) => {
                    request.headers.push((header, Text::read(text, arguments, false)?));
                }
                source => request.secret_headers.push((header, source.clone())),
            }
        }
        Ok(request)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let body: Vec<&str> = match &self.body {
            Body::None => Vec::new(),
            Body::Json(template) => template.names(),
            Body::Form(pairs) => pairs.iter().flat_map(Pair::names).collect(),
            Body::Text(text) => text.names().collect(),
        };
        let headers = self.headers.iter().flat_map(|(_, text)| text.names());
        self.url.names().chain(self.query.iter().flat_map(Pair::names)).chain(headers).chain(body).collect()
    }

    /// Returns the request of a call, without its secrets.
    fn request(&self, arguments: &JsonObject) -> Result<HttpRequest<Bytes>, CallFault> {
        let (content_type, body) = self.body.fill(arguments);
        let mut request = HttpRequest::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri(&self.url.fill(arguments, &self.query)?)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, self.accept());
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        for (name, text) in &self.headers {
            if let Some(value) = text.texts(arguments).pop() {
                headers.insert(name.clone(), header(name, &value)?);
            }
        }
        Ok(request)
    }

    /// Returns the request as it is sent for a call.
    pub(crate) fn plan(&self, arguments: &JsonObject) -> Result<PlannedRequest, CallFault> {
        let mut plan = PlannedRequest::new(&self.request(arguments)?);
        self.secret_query.iter().for_each(|(name, _)| plan.secret_in_query(name));
        self.secret_headers.iter().for_each(|(name, _)| plan.secret_header(name.as_str()));
        Ok(plan)
    }

    /// Sends the request of a call, and returns its result.
    pub(crate) async fn call(&self, arguments: &JsonObject) -> Result<CallToolResult, ToolError> {
        let mut request = self.request(arguments)?;
        let mut secrets = Vec::new();
        for (name, value) in &self.secret_query {
            let value = value.read()?;
            let before = if request.uri().query().is_some() { '&' } else { '?' };
            *request.uri_mut() = uri(&format!("{}{before}{name}={}", request.uri(), encode(&value)))?;
            secrets.push(value);
        }
        for (name, value) in &self.secret_headers {
            let value = value.read()?;
            let mut sent = header(name, &value)?;
            sent.set_sensitive(true);
            request.headers_mut().insert(name.clone(), sent);
            secrets.push(value);
        }
        let fetched = timeout(self.timeout, self.client.fetch(request, &secrets)).await;
        let late = |_| ToolError::new(format!("there was no answer within {:?}", self.timeout));
        let answer = fetched.map_err(late)?.map_err(ToolError::new)?;
        let picked = self.pick.as_deref().map(|pick| self.picked(pick, answer.body())).transpose()?;
        let output = match (&picked, answer.body().is_empty(), &self.output) {
            (Some(picked), _, _) => picked.as_bytes(),
            (None, true, OutputKind::Text) => {
                return Ok(CallToolResult::new(vec![format!("HTTP {}", answer.status()).into()]));
            }
            (None, _, _) => answer.body(),
        };
        self.output.result(output).map_err(|reason| ToolError::new(format!("the answer: {reason}")))
    }

    /// Returns a part of an answer.
    fn picked(&self, pick: &str, answer: &[u8]) -> Result<String, ToolError> {
        let value: Value = serde_json::from_slice(answer).map_err(|error| {
            ToolError::new(format!("the answer is no JSON, of which `pick` is a part: {error}"))
        })?;
        match value.pointer(pick) {
            Some(Value::String(text)) if self.output == OutputKind::Text => Ok(text.clone()),
            Some(part) => Ok(part.to_string()),
            None => Err(ToolError::new(format!(
                "the answer has nothing at `{pick}`, which is `pick` of the tool"
            ))),
        }
    }

    fn accept(&self) -> HeaderValue {
        let text = match &self.output {
            OutputKind::Text => "*/*",
            OutputKind::Json => "application/json",
            OutputKind::Image(kind) | OutputKind::Audio(kind) => kind,
        };
        HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("*/*"))
    }
}

impl Body {
    fn read(entry: &RequestEntry, arguments: &BTreeMap<String, Argument>) -> Result<Self, String> {
        Ok(match (&entry.json, &entry.form, &entry.body) {
            (None, None, None) => Self::None,
            (Some(json), None, None) => Self::Json(JsonTemplate::read(json, arguments)?),
            (None, Some(form), None) => {
                let pairs = form.iter().map(|(name, value)| Pair::read(name, value, arguments));
                Self::Form(pairs.collect::<Result<_, _>>()?)
            }
            (None, None, Some(text)) => Self::Text(Text::read(text, arguments, false)?),
            _ => return Err("a request has one of `json`, `form` and `body`: remove the others".to_owned()),
        })
    }

    /// Returns the media type and the bytes of a call.
    fn fill(&self, arguments: &JsonObject) -> (Option<&'static str>, Bytes) {
        match self {
            Self::None => (None, Bytes::new()),
            Self::Json(template) => match template.fill(arguments) {
                Some(value) => (Some("application/json"), value.to_string().into()),
                None => (None, Bytes::new()),
            },
            Self::Form(form) => {
                (Some("application/x-www-form-urlencoded"), pairs(form.iter(), arguments).into())
            }
            Self::Text(text) => (Some("text/plain; charset=utf-8"), text.print(arguments).into()),
        }
    }
}

fn uri(url: &str) -> Result<Uri, CallFault> {
    if url.len() > MAX_URL {
        return Err(CallFault(format!("the URL has more than {MAX_URL} bytes: send less")));
    }
    // It may have a secret.
    url.parse().map_err(|_| CallFault("the URL cannot be made of these values: send others".to_owned()))
}

fn header(name: &HeaderName, value: &str) -> Result<HeaderValue, CallFault> {
    if value.len() > MAX_HEADER {
        return Err(CallFault(format!("the header `{name}` has more than {MAX_HEADER} bytes: send less")));
    }
    // It may be a secret.
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        CallFault(format!(
            "the header `{name}` cannot have line breaks and control characters: leave them out"
        ))
    })
}
