use std::sync::Arc;

use pintle::Result;

use super::{jwt::SigningKey, secret::Secret};

/// A client that is registered with an authorization server: the issuer, the client's id, and its credentials.
///
/// They are sent to no other authorization server, whatever a server's metadata states.
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

/// The credentials of a client.
#[derive(Clone, Debug)]
pub(crate) enum Proof {
    /// A public client: a program cannot keep a secret from the user who runs it.
    None,
    Secret(Secret),
    Key(Arc<SigningKey>),
}

impl Registered {
    /// Creates a public client with this id at the authorization server `issuer`.
    ///
    /// The issuer is written as in its metadata, byte for byte.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self { client_id: client_id.into(), proof: Proof::None, issuer: issuer.into() }
    }

    /// Authenticates the client with a secret.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.proof = Proof::Secret(secret.into());
        self
    }

    /// Authenticates the client with signatures of a P-256 key: the text of a PEM file that begins with
    /// `-----BEGIN PRIVATE KEY-----`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not such a key.
    pub fn key(mut self, pem: impl AsRef<str>) -> Result<Self> {
        self.proof = Proof::Key(Arc::new(SigningKey::from_pem(pem.as_ref())?));
        Ok(self)
    }
}
