use std::{fmt, future::Future, pin::Pin};

use super::{principal::Principal, token::Token};

/// Verifies tokens.
///
/// [`Jwt`](super::Jwt), [`Introspection`](super::Introspection) and [`Checked`](super::Checked) implement it.
pub trait Verify: Send + Sync + 'static {
    /// Returns the issuer of the tokens, which clients are sent to.
    fn issuer(&self) -> &str;

    /// Whether this verifier is responsible for a token, if there are [several](super::Protected::or).
    fn takes(&self, token: &Token) -> bool {
        let _ = token;
        true
    }

    /// Checks a token: that it is genuine, has not expired, and is meant for [this server](Token::resource).
    fn verify(&self, token: Token) -> impl Future<Output = Result<Principal, Rejection>> + Send;
}

/// The error for a token that is not accepted. The client reads it, so it must not contain parts of the token.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rejection {
    /// The token is invalid: 401, and the client requests another.
    Invalid(String),
    /// The token cannot be checked at the moment: 503, and the client tries again. The reason is logged.
    Unavailable(String),
    /// Too many tokens are being checked: 503, and the client tries again soon. Single rejections are not logged.
    Overloaded,
}

impl Rejection {
    /// Rejects an invalid token, with the reason.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }

    /// Rejects a token that cannot be checked at the moment, with the reason.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "the token is not accepted: {why}"),
            Self::Unavailable(why) => write!(f, "the token cannot be checked: {why}"),
            Self::Overloaded => write!(f, "the token cannot be checked: too many others are waiting"),
        }
    }
}

impl std::error::Error for Rejection {}

/// A [`Verify`] of any type.
pub(super) trait AnyVerify: Send + Sync {
    fn issuer(&self) -> &str;
    fn takes(&self, token: &Token) -> bool;
    fn verify(&self, token: Token) -> Verifying<'_>;
}

pub(super) type Verifying<'a> = Pin<Box<dyn Future<Output = Result<Principal, Rejection>> + Send + 'a>>;

impl<V: Verify> AnyVerify for V {
    fn issuer(&self) -> &str {
        Verify::issuer(self)
    }

    fn takes(&self, token: &Token) -> bool {
        Verify::takes(self, token)
    }

    fn verify(&self, token: Token) -> Verifying<'_> {
        Box::pin(Verify::verify(self, token))
    }
}
