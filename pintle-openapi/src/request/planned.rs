use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use serde::Serialize;

/// A request of a call, without its secrets.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PlannedRequest {
    /// The method.
    pub method: String,
    /// The URL. A secret in its query is `…`.
    pub url: String,
    /// The headers, in lower case, with their values; `None` is a value that is a secret, or may have one.
    pub headers: Vec<(String, Option<String>)>,
    /// The body, if there is one: a text, or base64.
    pub body: Option<String>,
    /// Whether the body is base64, because its bytes are no text.
    pub is_base64: bool,
}

impl PlannedRequest {
    /// Describes a request. Values of headers that are [sensitive](http::HeaderValue::is_sensitive) are left out.
    pub fn new(request: &Request<Bytes>) -> Self {
        let (body, is_base64) = match std::str::from_utf8(request.body()) {
            Ok("") => (None, false),
            Ok(text) => (Some(text.to_owned()), false),
            Err(_) => (Some(STANDARD.encode(request.body())), true),
        };
        let shown = |value: &HeaderValue| {
            (!value.is_sensitive()).then(|| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = request.headers().iter();
        Self {
            method: request.method().to_string(),
            url: request.uri().to_string(),
            headers: headers.map(|(name, value)| (name.to_string(), shown(value))).collect(),
            body,
            is_base64,
        }
    }

    /// Adds a pair to the query whose value is a secret. The name is encoded.
    pub fn secret_in_query(&mut self, name: &str) {
        let before = if self.url.contains('?') { '&' } else { '?' };
        self.url += &format!("{before}{name}=…");
    }

    /// Sets a header, in lower case, whose value is a secret.
    pub fn secret_header(&mut self, name: &str) {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), None));
    }

    /// Returns the command of curl that sends the request. A body in base64 is its standard input, decoded.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["curl".to_owned()];
        match &*self.method {
            method if method == Method::HEAD => words.push("--head".to_owned()),
            method if method == Method::GET && self.body.is_none() => {}
            method => words.extend(["-X".to_owned(), method.to_owned()]),
        }
        words.push(self.url.clone());
        for (name, value) in &self.headers {
            // A header without a value has a `;` there.
            let header = match value.as_deref() {
                Some("") => format!("{name};"),
                value => format!("{name}: {}", value.unwrap_or("…")),
            };
            words.extend(["-H".to_owned(), header]);
        }
        match &self.body {
            Some(_) if self.is_base64 => words.extend(["--data-binary", "@-"].map(str::to_owned)),
            Some(text) => words.extend(["--data-raw".to_owned(), text.clone()]),
            None => {}
        }
        words
    }
}
