use std::{fmt, sync::Arc};

use pintle::Result;

use super::issued::{IssuedToken, TokenEndpoint};
use crate::shared::{form::Form, reach::Reach, registered::Registered, scope::Scopes, web::Web};

/// Requests tokens for the program itself from a token endpoint that it knows: the `client_credentials` grant, for servers that are not
/// of MCP. [`OAuth::machine`](crate::client::OAuth::machine) finds the endpoint.
///
/// ```no_run
/// use pintle_oauth::client::{ClientCredentials, Registered};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let client = Registered::new("https://login.example.com", "bot").secret("s3cret");
/// let credentials = ClientCredentials::new("https://login.example.com/token", client).scopes(["pets:read"]);
/// let token = credentials.token().await?;
/// # drop(token); Ok(()) }
/// ```
#[derive(Clone)]
pub struct ClientCredentials {
    endpoint: TokenEndpoint,
}

impl ClientCredentials {
    /// Requests tokens from this endpoint, as a client of its authorization server.
    pub fn new(token_endpoint: impl Into<String>, client: Registered) -> Self {
        Self { endpoint: TokenEndpoint::new(token_endpoint.into(), client) }
    }

    /// Sets the scopes of the tokens. By default, the authorization server chooses them.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.endpoint.scopes = Scopes::of(scopes);
        self
    }

    /// Sets the networks that the endpoint may be in, if others have written its address. By default, it may be anywhere.
    #[must_use]
    pub fn reach(mut self, reach: Reach) -> Self {
        self.endpoint.reach = Some(reach);
        self
    }

    /// Sends requests with this. The default is [`Network`](crate::client::Network).
    #[must_use]
    pub fn web(mut self, web: impl Web) -> Self {
        self.endpoint.web = Arc::new(web);
        self
    }

    /// Requests a token.
    ///
    /// # Errors
    ///
    /// The authorization server cannot be reached, or refuses.
    pub async fn token(&self) -> Result<IssuedToken> {
        self.endpoint.issue(Form::new().with("grant_type", "client_credentials"), None).await
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials")
            .field("token_endpoint", &self.endpoint.url)
            .finish_non_exhaustive()
    }
}
