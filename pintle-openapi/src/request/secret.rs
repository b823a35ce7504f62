use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderValue,
    header::{AUTHORIZATION, COOKIE, HeaderName},
};

use super::PlannedRequest;
use crate::{operation::Carrier, url::encode};

/// A text that is in no message.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A credential, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct AppliedSecret {
    secret: Secret,
    sent: Sent,
}

#[derive(Clone)]
enum Sent {
    Header(HeaderName, HeaderValue),
    /// The name and the value, encoded.
    Query(String),
    /// The name and the value, encoded.
    Cookie(String),
}

/// The length from which a secret is looked for in what an API answers: shorter ones are in any text.
const MIN_REDACTED: usize = 4;

impl AppliedSecret {
    /// Returns a credential as a security scheme sends it.
    pub(crate) fn new(carrier: &Carrier, secret: &Secret) -> Result<Self, &'static str> {
        let text = &secret.0;
        let header = |name: &HeaderName, text: &str| {
            let mut value = HeaderValue::from_str(text)
                .map_err(|_| "it has characters that no header can carry; trim it")?;
            value.set_sensitive(true);
            Ok::<_, &'static str>(Sent::Header(name.clone(), value))
        };
        let sent = match carrier {
            Carrier::Header(name) => header(name, text)?,
            Carrier::Bearer => header(&AUTHORIZATION, &format!("Bearer {text}"))?,
            Carrier::Basic if !text.contains(':') => return Err("it is not `user:password`; write both"),
            Carrier::Basic => header(&AUTHORIZATION, &format!("Basic {}", STANDARD.encode(text)))?,
            Carrier::Query(name) => Sent::Query(format!("{}={}", encode(name), encode(text))),
            Carrier::Cookie(name) => Sent::Cookie(format!("{}={}", encode(name), encode(text))),
        };
        Ok(Self { secret: secret.clone(), sent })
    }

    /// Adds it to a request. No argument replaces it.
    pub(super) fn apply(&self, head: &mut HeaderMap, query: &mut Vec<String>, cookies: &mut Vec<String>) {
        match &self.sent {
            Sent::Header(name, value) => drop(head.insert(name.clone(), value.clone())),
            Sent::Query(pair) => query.push(pair.clone()),
            Sent::Cookie(pair) => cookies.push(pair.clone()),
        }
    }

    /// Adds its place to the description of a request.
    pub(super) fn show(&self, planned: &mut PlannedRequest) {
        match &self.sent {
            Sent::Header(name, _) => planned.secret_header(name.as_str()),
            Sent::Query(pair) => planned.secret_in_query(pair.split('=').next().unwrap_or_default()),
            Sent::Cookie(_) => planned.secret_header(COOKIE.as_str()),
        }
    }

    /// Removes it from a text that an API wrote.
    pub(crate) fn redact(&self, text: &str) -> String {
        let Secret(secret) = &self.secret;
        let password = secret.split_once(':').map_or("", |(_, password)| password);
        // An API may repeat what it got.
        let sent = match &self.sent {
            Sent::Header(_, value) => value.to_str().unwrap_or_default(),
            Sent::Query(pair) | Sent::Cookie(pair) => pair.split_once('=').map_or("", |(_, value)| value),
        };
        let sent = sent.strip_prefix("Basic ").unwrap_or(sent);
        redact([sent, secret.as_str(), password], text)
    }
}

/// Removes secrets from a text that an API wrote.
pub(crate) fn redact<'a>(secrets: impl IntoIterator<Item = &'a str>, text: &str) -> String {
    let secrets = secrets.into_iter().filter(|secret| secret.len() >= MIN_REDACTED);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sent(…)")
    }
}
