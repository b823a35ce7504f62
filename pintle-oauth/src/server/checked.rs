use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{
    principal::Principal,
    token::Token,
    verify::{Rejection, Verify},
};

type Check =
    dyn Fn(Token) -> Pin<Box<dyn Future<Output = Result<Principal, Rejection>> + Send>> + Send + Sync;

/// Verifies tokens with a function of the application.
///
/// ```
/// use pintle_oauth::server::{Checked, Principal, Protected, Rejection, Token};
///
/// # fn main() -> pintle::Result<()> {
/// let tokens = Checked::new("https://login.example.com", |token: Token| async move {
///     // Look it up, and see that it was issued for `token.resource()`.
///     match token.reveal() {
///         "letmein" => Ok(Principal::new("https://login.example.com", "ann").granted(["notes:read"])),
///         _ => Err(Rejection::invalid("no such token")),
///     }
/// });
/// let protected = Protected::new("https://mcp.example.com/mcp", tokens)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Checked {
    issuer: String,
    check: Arc<Check>,
}

impl Checked {
    /// Verifies the tokens of this authorization server with `check`.
    pub fn new<F, Fut>(issuer: impl Into<String>, check: F) -> Self
    where
        F: Fn(Token) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Principal, Rejection>> + Send + 'static,
    {
        Self { issuer: issuer.into(), check: Arc::new(move |token| Box::pin(check(token))) }
    }
}

impl Verify for Checked {
    fn issuer(&self) -> &str {
        &self.issuer
    }

    async fn verify(&self, token: Token) -> Result<Principal, Rejection> {
        (self.check)(token).await
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
