use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::types::JsonObject;
use serde::Deserialize;

use super::secret::Secret;

/// More than any token needs that fits into a header.
const LONGEST: usize = 16 << 10;

/// A token that came with a request, and what it has to be for. It prints as nothing.
#[derive(Clone)]
pub struct Token(Arc<Inner>);

struct Inner {
    text: Secret,
    resource: Arc<str>,
    signed: Option<Signed>,
}

/// A token in the form of a JWT, with nothing checked yet.
pub(super) struct Signed {
    pub(super) header: Header,
    pub(super) claims: JsonObject,
    pub(super) signature: Vec<u8>,
    /// How much of the text is signed.
    length: usize,
}

/// What its header says of how it is signed. What it says of keys besides their name is not believed.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    pub(super) kid: Option<String>,
    pub(super) typ: Option<String>,
    pub(super) crit: Option<serde_json::Value>,
    /// Of a proof: the key that it is signed with.
    pub(super) jwk: Option<serde_json::Value>,
}

impl Token {
    /// This token, for this resource: for tests of a verifier of your own.
    pub fn new(text: impl Into<Secret>, resource: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let signed = Signed::parse(text.reveal());
        Self(Arc::new(Inner { text, resource: resource.into(), signed }))
    }

    /// The token itself. Mind where it goes: not into a log, not into an error, and to nobody but its issuer.
    pub fn reveal(&self) -> &str {
        self.0.text.reveal()
    }

    /// The server that it has to be meant for, as its metadata says.
    pub fn resource(&self) -> &str {
        &self.0.resource
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.reveal().len() > LONGEST
    }

    pub(super) fn signed(&self) -> Option<&Signed> {
        self.0.signed.as_ref()
    }

    /// Who it says that issued it, which nobody has checked.
    pub(super) fn said_issuer(&self) -> Option<&str> {
        self.signed()?.claims.get("iss")?.as_str()
    }
}

impl Signed {
    /// `None`: it is no JWT, or one that nobody needs to look at.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
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

    /// The part of the text that is signed.
    pub(super) fn covered<'a>(&self, text: &'a str) -> &'a [u8] {
        text.as_bytes().get(..self.length).unwrap_or_default()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("resource", &self.0.resource).finish_non_exhaustive()
    }
}
