use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};

use serde_json::Value;

use super::endpoint::Endpoint;
use crate::shared::form;

/// A parsed request.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) method: Method,
    pub(super) path: String,
    /// The parameters of the query, the form or a JSON body. A name that occurs twice is ignored: RFC 6749 §3.1.
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn read(request: Request<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        let is_form = head
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        let form = if is_form { std::str::from_utf8(&body).unwrap_or_default() } else { "" };
        let mut parameters = BTreeMap::new();
        let mut twice = Vec::new();
        for part in [head.uri.query().unwrap_or_default(), form] {
            for (name, value) in form::pairs(part).unwrap_or_default() {
                if parameters.insert(name.clone(), value).is_some() {
                    twice.push(name);
                }
            }
        }
        for name in twice {
            parameters.remove(&name);
        }
        // The members of a registration. Only strings: the others are not used.
        if let Ok(Value::Object(members)) = serde_json::from_slice(&body) {
            let texts = members.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
            parameters.extend(texts.map(|(name, text)| (name.clone(), text.to_owned())));
        }
        Self {
            method: head.method,
            path: head.uri.path().to_owned(),
            parameters,
            headers: head.headers,
            body,
        }
    }

    /// Returns a parameter. An empty one counts as absent: RFC 6749 §3.1.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the short name of the grant.
    pub(super) fn grant(&self) -> Option<&str> {
        self.get("grant_type").map(|grant| grant.rsplit(':').next().unwrap_or(grant))
    }

    /// Returns the id and the secret of the client, by `client_secret_basic` or in the form.
    pub(super) fn client(&self) -> Option<(String, Option<String>)> {
        let Some(header) = self.headers.get(header::AUTHORIZATION) else {
            let secret = self.get("client_secret").map(str::to_owned);
            return Some((self.get("client_id")?.to_owned(), secret));
        };
        let pair = STANDARD.decode(header.to_str().ok()?.strip_prefix("Basic ")?).ok()?;
        let pair = String::from_utf8(pair).ok()?;
        let (id, secret) = pair.split_once(':')?;
        Some((form::decoded(id)?, Some(form::decoded(secret)?)))
    }

    /// Returns the line of the log for this request.
    pub(super) fn log_line(&self, endpoint: Option<Endpoint>) -> String {
        let (method, path) = (&self.method, &self.path);
        let detail = match endpoint {
            Some(Endpoint::Token) => self.grant(),
            Some(Endpoint::Authorize) => self.get("scope"),
            _ => None,
        };
        detail.map_or_else(|| format!("{method} {path}"), |detail| format!("{method} {path} ({detail})"))
    }
}
