use std::{fmt, future::Future, pin::Pin};

use super::{principal::Principal, token::Token};

/// Finds out whether a token is good, and whose it is.
///
/// [`Jwt`](super::Jwt), [`Introspection`](super::Introspection) and [`Checked`](super::Checked) are those that there are.
pub trait Verify: Send + Sync + 'static {
    /// Who issues the tokens: clients are told to get theirs there.
    fn issuer(&self) -> &str;

    /// Whether this is the one to ask about a token, if there are [several](super::Protected::or).
    fn takes(&self, token: &Token) -> bool {
        let _ = token;
        true
    }

    /// Checks a token: that it is genuine, has not expired, and is meant for [this server](Token::resource).
    fn verify(&self, token: Token) -> impl Future<Output = Result<Principal, Rejection>> + Send;
}

/// Why a token is not accepted. The client gets to read it, so it has nothing of the token in it.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rejection {
    /// The token is no good: 401, and the client gets another.
    Invalid(String),
    /// Whether it is cannot be found out at the moment: 503, and the client tries again. The reason is for the log.
    Unavailable(String),
    /// There is too much to do to find it out now: 503, and the client tries again soon. Nothing is logged for each of
    /// them.
    Overloaded,
}

impl Rejection {
    /// The token is no good, and why.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }

    /// It cannot be found out at the moment, and why.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "the token is not accepted: {why}"),
            Self::Unavailable(why) => write!(f, "the token cannot be checked: {why}"),
            Self::Overloaded => write!(f, "the token cannot be checked: too many others wait for that"),
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
