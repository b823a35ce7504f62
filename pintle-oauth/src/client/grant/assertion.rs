use std::{fmt, future::Future, pin::Pin, sync::Arc};

use pintle::Result;

use crate::shared::{registered::Registered, secret::Secret};

type Fetch = dyn Fn() -> Pin<Box<dyn Future<Output = Result<Secret>> + Send>> + Send + Sync;

/// The source of a signed assertion: an identity token of a user, or one of the platform that a program runs on. It is
/// fetched for each grant, because assertions are short-lived.
///
/// ```
/// use pintle_oauth::client::{Assertion, OAuth};
///
/// let token = Assertion::from_fn(|| async {
///     Ok(std::fs::read_to_string("/var/run/secrets/tokens/mcp")?.trim().into())
/// });
/// let oauth = OAuth::workload("https://login.example.com", token);
/// ```
#[derive(Clone)]
pub struct Assertion(Arc<Fetch>);

impl Assertion {
    /// Always returns the same assertion.
    pub fn fixed(text: impl Into<Secret>) -> Self {
        let text = text.into();
        Self::from_fn(move || std::future::ready(Ok(text.clone())))
    }

    /// Calls `fetch` for each assertion.
    pub fn from_fn<F>(fetch: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Secret>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(fetch())))
    }

    pub(crate) async fn fetch(&self) -> Result<Secret> {
        (self.0)().await
    }
}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion(…)")
    }
}

/// An identity provider that decides for its users which servers they may use: `enterprise-managed-authorization`.
///
/// ```
/// use pintle_oauth::client::{Assertion, IdentityProvider, OAuth, Registered};
///
/// let provider = IdentityProvider::new(
///     "https://idp.example.com/token",
///     Registered::new("https://idp.example.com", "my-app-at-the-provider"),
///     Assertion::fixed("the id token of the user's sign-on"),
/// );
/// let client = Registered::new("https://login.example.com", "my-app").secret("s3cret");
/// let oauth = OAuth::enterprise(client, provider);
/// ```
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    pub(crate) token_endpoint: String,
    pub(crate) client: Registered,
    pub(crate) id_token: Assertion,
}

impl IdentityProvider {
    /// An identity provider by its token endpoint, with the client's registration there and the source of the user's identity
    /// token.
    pub fn new(token_endpoint: impl Into<String>, client: Registered, id_token: Assertion) -> Self {
        Self { token_endpoint: token_endpoint.into(), client, id_token }
    }
}
