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

    /// Returns the secret, to remove it from what an API repeats.
    pub(crate) fn text(&self) -> &str {
        &self.secret.0
    }
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sent(…)")
    }
}
