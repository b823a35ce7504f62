//! Requests of an operation, from the arguments of a call.

mod body;
mod planned;
mod redaction;
mod secret;
mod style;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE},
};
use pintle_oauth::client::BearerTokens;
use serde_json::{Map, Value};

use crate::{
    operation::{Base, Body, Parameter, PathTemplate, Piece, Place},
    url::{encode, has_dots},
};

pub use planned::PlannedRequest;
pub use redaction::Redaction;
pub(crate) use secret::AppliedSecret;

/// The limit of a URL, in bytes.
const MAX_URL: usize = 60 << 10;
/// The limit of the headers and of the cookies that arguments make, in bytes each.
const MAX_HEADER: usize = 16 << 10;

/// How the requests of an operation are made.
#[derive(Debug)]
pub(crate) struct RequestPlan {
    pub(crate) method: Method,
    pub(crate) base: Base,
    /// Whether it is at the origin of the URL that the program gives.
    pub(crate) is_at_base: bool,
    pub(crate) path: PathTemplate,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) secrets: Vec<AppliedSecret>,
    /// The source of the token that is sent, too.
    pub(crate) tokens: Option<BearerTokens>,
    pub(crate) accept: HeaderValue,
}

impl RequestPlan {
    /// Makes a request.
    ///
    /// # Errors
    ///
    /// The reason why the arguments make none, which names the argument and no secret.
    pub(crate) fn request(
        &self,
        arguments: &Map<String, Value>,
        headers: &HeaderMap,
    ) -> Result<Request<Bytes>, String> {
        self.with_secrets(arguments, headers, &self.secrets)
    }

    /// Returns a URL of the API with the secrets of a query, which links leave out.
    pub(crate) fn with_query_secrets(&self, link: &Uri) -> Option<Uri> {
        let mut secrets = Vec::new();
        for secret in &self.secrets {
            secret.apply(&mut HeaderMap::new(), &mut secrets, &mut Vec::new());
        }
        let given: Vec<&str> = link.query().into_iter().flat_map(|query| query.split('&')).collect();
        let added = secrets.iter().map(String::as_str).filter(|secret| !given.contains(secret));
        let query: Vec<&str> = given.iter().copied().chain(added).collect();
        if query.is_empty() {
            return Some(link.clone());
        }
        format!("{}{}?{}", self.base.origin, link.path(), query.join("&")).parse().ok()
    }

    /// Describes the request without its secrets.
    ///
    /// # Errors
    ///
    /// Those of [`request`](Self::request).
    pub(crate) fn planned(
        &self,
        arguments: &Map<String, Value>,
        headers: &HeaderMap,
    ) -> Result<PlannedRequest, String> {
        let mut planned = PlannedRequest::new(&self.with_secrets(arguments, headers, &[])?);
        self.secrets.iter().for_each(|secret| secret.show(&mut planned));
        if self.tokens.is_some() {
            planned.secret_header(AUTHORIZATION.as_str());
        }
        Ok(planned)
    }

    fn with_secrets(
        &self,
        arguments: &Map<String, Value>,
        headers: &HeaderMap,
        secrets: &[AppliedSecret],
    ) -> Result<Request<Bytes>, String> {
        let mut head = HeaderMap::new();
        head.insert(ACCEPT, self.accept.clone());
        let mut cookies = Vec::new();
        let mut query: Vec<String> = self.path.query.iter().cloned().collect();
        for parameter in &self.parameters {
            let Some(value) = self.value(parameter, arguments) else { continue };
            let faulty = |reason: String| format!("`{}`: {reason}", parameter.argument);
            match parameter.place {
                Place::Path => {}
                Place::Query => {
                    style::pairs(&mut query, &encode(&parameter.name), parameter, value).map_err(faulty)?;
                }
                Place::Header => {
                    let (name, value) = header(parameter, value).map_err(faulty)?;
                    head.insert(name, value);
                }
                Place::Cookie => {
                    style::pairs(&mut cookies, &parameter.name, parameter, value).map_err(faulty)?;
                }
            }
        }
        let mut url = format!("{}{}{}", self.base.origin, self.base.path, self.path(arguments)?);
        let body = match &self.body {
            Some(body) => body::write(body, arguments)?,
            None => None,
        };
        if let Some((content_type, _)) = &body {
            head.insert(CONTENT_TYPE, content_type.clone());
        }
        // What the program sends replaces what arguments say.
        for (name, value) in headers {
            head.insert(name, value.clone());
        }
        if cookies.iter().map(String::len).sum::<usize>() > MAX_HEADER {
            return Err(format!("the cookies have more than {MAX_HEADER} bytes; send less"));
        }
        secrets.iter().for_each(|secret| secret.apply(&mut head, &mut query, &mut cookies));
        if !query.is_empty() {
            url = format!("{url}?{}", query.join("&"));
        }
        if url.len() > MAX_URL {
            return Err(format!("the URL has more than {MAX_URL} bytes; send less"));
        }
        if !cookies.is_empty() {
            let mut cookie = HeaderValue::from_str(&cookies.join("; ")).map_err(|_| "a cookie is no text")?;
            cookie.set_sensitive(true);
            head.insert(COOKIE, cookie);
        }
        // No argument is in the origin: what came of it is what the document says.
        let uri: Uri = url.parse().map_err(|_| "the URL cannot be made of these values; change them")?;
        let origin = uri.scheme_str().zip(uri.authority()).map(|(scheme, host)| format!("{scheme}://{host}"));
        if origin.as_deref() != Some(&self.base.origin) {
            return Err("the URL cannot be made of these values; change them".to_owned());
        }
        let mut request = Request::new(body.map(|(_, bytes)| bytes).unwrap_or_default());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
            (self.method.clone(), uri, head);
        Ok(request)
    }

    /// Returns the value of a parameter, if it is sent.
    fn value<'a>(&'a self, parameter: &'a Parameter, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let given = arguments.get(&parameter.argument).filter(|value| !value.is_null());
        given.or(parameter.default.as_ref())
    }

    fn path(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let mut path = String::new();
        for piece in &self.path.pieces {
            let name = match piece {
                Piece::Text(text) => {
                    path += text;
                    continue;
                }
                Piece::Parameter(name) => name,
            };
            let is_it = |parameter: &&Parameter| parameter.place == Place::Path && parameter.name == *name;
            let found =
                self.parameters.iter().find(is_it).and_then(|one| Some((one, self.value(one, arguments)?)));
            let (parameter, value) = found.ok_or_else(|| format!("`{name}` is missing; give it"))?;
            let texts = style::texts(value);
            if texts.is_empty() || texts.iter().any(String::is_empty) {
                return Err(format!(
                    "`{}` is empty, and a part of the path; give a value",
                    parameter.argument
                ));
            }
            if texts.iter().any(|text| has_dots(text)) {
                return Err(format!(
                    "`{}` has a segment `.` or `..`, which would lead to another path; give a value without it",
                    parameter.argument
                ));
            }
            path += &style::path(parameter, value);
        }
        // A value may only together with what is around it be one.
        if has_dots(&path) {
            return Err("the values make a path with a segment `.` or `..`; change them".to_owned());
        }
        Ok(path)
    }
}

fn header(parameter: &Parameter, value: &Value) -> Result<(HeaderName, HeaderValue), String> {
    let text = style::header(parameter, value);
    if text.len() > MAX_HEADER {
        return Err(format!("a header has at most {MAX_HEADER} bytes; send less"));
    }
    let name = HeaderName::from_bytes(parameter.name.as_bytes());
    let value = HeaderValue::from_bytes(text.as_bytes());
    let no_header = || "a header cannot have line breaks and control characters; leave them out".to_owned();
    name.ok().zip(value.ok()).ok_or_else(no_header)
}
