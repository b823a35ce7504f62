use std::sync::Arc;

use pintle::Result;

use super::{jwt::SigningKey, secret::Secret};

/// A client that an authorization server knows already: which one, its id, and what it proves itself with.
///
/// No other authorization server is shown anything of it, whatever a server's metadata says.
///
/// ```
/// use pintle_oauth::client::{OAuth, Registered};
///
/// let client = Registered::new("https://login.example.com", "my-app").secret("s3cret");
/// let oauth = OAuth::machine(client);
/// ```
#[derive(Clone, Debug)]
pub struct Registered {
    pub(crate) client_id: String,
    pub(crate) proof: Proof,
    pub(crate) issuer: String,
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
    /// The client that the authorization server `issuer` knows by this id. It proves itself with nothing yet.
    ///
    /// The issuer is written as its metadata has it, byte for byte.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self { client_id: client_id.into(), proof: Proof::None, issuer: issuer.into() }
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
}
