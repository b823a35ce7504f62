use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderValue,
    header::{AUTHORIZATION, COOKIE, HeaderName},
};

use pintle_oauth::client::Secret;

use super::PlannedRequest;
use crate::{operation::Carrier, url::encode};

/// A credential, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct AppliedSecret {
    secret: Secret,
    sent: Sent,
}

#[derive(Clone, Debug)]
enum Sent {
    Header(HeaderName, HeaderValue),
    /// The name and the value, encoded.
    Query(Secret),
    /// The name and the value, encoded.
    Cookie(Secret),
}

impl AppliedSecret {
    /// Returns a credential as a security scheme sends it.
    pub(crate) fn new(carrier: &Carrier, secret: &Secret) -> Result<Self, &'static str> {
        let text = secret.reveal();
        let pair = |name: &str| Secret::new(format!("{}={}", encode(name), encode(text)));
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
            Carrier::Query(name) => Sent::Query(pair(name)),
            Carrier::Cookie(name) => Sent::Cookie(pair(name)),
        };
        Ok(Self { secret: secret.clone(), sent })
    }

    /// Adds it to a request. No argument replaces it.
    pub(super) fn apply(&self, head: &mut HeaderMap, query: &mut Vec<String>, cookies: &mut Vec<String>) {
        match &self.sent {
            Sent::Header(name, value) => drop(head.insert(name.clone(), value.clone())),
            Sent::Query(pair) => query.push(pair.reveal().to_owned()),
            Sent::Cookie(pair) => cookies.push(pair.reveal().to_owned()),
        }
    }

    /// Adds its place to the description of a request.
    pub(super) fn show(&self, planned: &mut PlannedRequest) {
        match &self.sent {
            Sent::Header(name, _) => planned.secret_header(name.as_str()),
            Sent::Query(pair) => planned.secret_in_query(pair.reveal().split('=').next().unwrap_or_default()),
            Sent::Cookie(_) => planned.secret_header(COOKIE.as_str()),
        }
    }

    /// Returns the secret, to remove it from what an API repeats.
    pub(crate) fn text(&self) -> &str {
        self.secret.reveal()
    }
}
