use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::types::JsonObject;
use serde::Deserialize;

use super::secret::Secret;

/// The limit of a token in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// The token of a request, and the resource that it has to be for. It is never printed.
#[derive(Clone)]
pub struct Token(Arc<TokenInner>);

struct TokenInner {
    text: Secret,
    resource: Arc<str>,
    signed: Option<Signed>,
}

/// A parsed JWT that is not verified yet.
pub(super) struct Signed {
    pub(super) header: Header,
    pub(super) claims: JsonObject,
    pub(super) signature: Vec<u8>,
    /// The length of the signed part of the text.
    length: usize,
}

/// The header of a JWT. Keys in it are not trusted.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    pub(super) kid: Option<String>,
    pub(super) typ: Option<String>,
    pub(super) crit: Option<serde_json::Value>,
    /// The key of a DPoP proof.
    pub(super) jwk: Option<serde_json::Value>,
}

impl Token {
    /// Creates a token for this resource, for tests of a verifier of your own.
    pub fn new(text: impl Into<Secret>, resource: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let signed = Signed::parse(text.reveal());
        Self(Arc::new(TokenInner { text, resource: resource.into(), signed }))
    }

    /// Returns the token itself. Do not log it, quote it in an error, or send it to anyone but its issuer.
    pub fn reveal(&self) -> &str {
        self.0.text.reveal()
    }

    /// Returns the resource that it has to be for: the server's address as in its metadata.
    pub fn resource(&self) -> &str {
        &self.0.resource
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.reveal().len() > MAX_LENGTH
    }

    pub(super) fn signed(&self) -> Option<&Signed> {
        self.0.signed.as_ref()
    }

    /// Returns the `iss` claim, which is not verified.
    pub(super) fn claimed_issuer(&self) -> Option<&str> {
        self.signed()?.claims.get("iss")?.as_str()
    }
}

impl Signed {
    /// Parses a JWT. `None`: it is not one, or too long.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        Some(Self {
            header: serde_json::from_slice(&decoded(header)?).ok()?,
            claims: serde_json::from_slice(&decoded(claims)?).ok()?,
            signature: decoded(signature)?,
            length: signed.len(),
        })
    }

    /// Returns the signed part of the text.
    pub(super) fn covered<'a>(&self, text: &'a str) -> &'a [u8] {
        text.as_bytes().get(..self.length).unwrap_or_default()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("resource", &self.0.resource).finish_non_exhaustive()
    }
}

/// The token of a request, for a server that exchanges it for one of another server. It must not be sent to that server itself.
///
/// Requests have it in their extensions if [`Protected::keep_token`](super::Protected::keep_token) is set. Tokens that are bound to a key are not kept: nobody else can use
/// them.
#[derive(Clone, Debug)]
pub struct CallerToken(Secret);

impl CallerToken {
    pub(super) fn new(token: &str) -> Self {
        Self(Secret::new(token))
    }

    /// Returns the token.
    pub fn secret(&self) -> &Secret {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_not_parsed() {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
        for (claims, good) in [("{  }", true), ("{   }", false)] {
            let signed = format!("{header}.{}.", URL_SAFE_NO_PAD.encode(claims));
            // A signature of whole groups, up to the limit or one byte longer.
            let text = format!("{signed}{}", "A".repeat((MAX_LENGTH - signed.len()).next_multiple_of(4)));
            assert!(good == (text.len() == MAX_LENGTH), "{}", text.len());
            assert_eq!(Signed::parse(&text).is_some(), good);
            assert_eq!(Token::new(text, "https://mcp.test").is_too_long(), !good);
        }
    }
}
