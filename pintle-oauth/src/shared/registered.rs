use std::sync::Arc;

use pintle::Result;

use super::{jwt::SigningKey, secret::Secret};

/// A client that an authorization server knows already: its id, and what it proves itself with.
///
/// ```
/// use pintle_oauth::client::{OAuth, Registered};
///
/// let client = Registered::new("my-app").secret("s3cret").issuer("https://login.example.com");
/// let oauth = OAuth::machine(client);
/// ```
#[derive(Clone, Debug)]
pub struct Registered {
    pub(crate) client_id: String,
    pub(crate) proof: Proof,
    pub(crate) issuer: Option<String>,
}

/// What a client proves itself with.
#[derive(Clone, Debug)]
pub(crate) enum Proof {
    /// Nothing: everyone can read what is in a program that they run.
    None,
    Secret(Secret),
    Key(Arc<SigningKey>),
}

impl Registered {
    /// A client that proves itself with nothing.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self { client_id: client_id.into(), proof: Proof::None, issuer: None }
    }

    /// Proves itself with a secret.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.proof = Proof::Secret(secret.into());
        self
    }

    /// Proves itself with a P-256 key, by signatures: the text of a PEM file that begins with
    /// `-----BEGIN PRIVATE KEY-----`.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn key(mut self, pem: impl AsRef<str>) -> Result<Self> {
        self.proof = Proof::Key(Arc::new(SigningKey::from_pem(pem.as_ref())?));
        Ok(self)
    }

    /// The authorization server that knows it; no other is shown anything of it.
    ///
    /// If this is not said, it is the first one that the server names.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}
