use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use pintle::{proto::http::Refusal, types::RpcError};
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

use super::{ServedBody, refused};
use crate::failure::Failure;

/// Access for requests: open, or with a token.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Everybody whose `Host` and `Origin` are allowed.
    Open,
    /// Clients that send a token, each of which is that of a principal.
    Bearer(Box<[BearerToken]>),
    /// Clients with a token of an authorization server, which the routes check.
    Routes,
}

/// The principal of all clients that send the random token.
const PRINCIPAL: &str = "bearer";

/// A token, and what a sent one is compared with.
#[derive(Clone)]
pub(crate) struct BearerToken {
    principal: Box<str>,
    /// `None` if the user knows it.
    printed: Option<Box<str>>,
    key: hmac::Key,
    tag: hmac::Tag,
}

impl Access {
    /// Requires the token in one of these environment variables. The name of the variable is the principal of its clients.
    pub(super) fn of_variables(names: &[String]) -> Result<Self, Failure> {
        let mut tokens: Vec<BearerToken> = Vec::with_capacity(names.len());
        for name in names {
            let token = std::env::var(name).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
                let message = format!("the environment variable `{name}` has no token");
                Failure::usage(message, format!("export {name}=…"))
            })?;
            if let Some(other) = tokens.iter().find(|known| known.is(&token)) {
                let message =
                    format!("`{name}` has the token of `{}`: give each client its own", other.principal);
                return Err(Failure::usage(message, format!("export {name}=…")));
            }
            tokens.push(BearerToken::new(name, &token, None)?);
        }
        Ok(Self::Bearer(tokens.into()))
    }

    /// Requires a random token, which has to be printed.
    pub(super) fn random() -> Result<Self, Failure> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| no_random_numbers())?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        Ok(Self::Bearer([BearerToken::new(PRINCIPAL, &token, Some(token.as_str().into()))?].into()))
    }

    /// Returns the random token.
    pub(super) fn token(&self) -> Option<&str> {
        match self {
            Self::Open | Self::Routes => None,
            Self::Bearer(tokens) => tokens.iter().find_map(|token| token.printed.as_deref()),
        }
    }

    /// Returns the principal of a request, if clients have to send a token.
    ///
    /// # Errors
    ///
    /// The response to a request that may not be made.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<Option<&str>, Box<Response<ServedBody>>> {
        let tokens = match self {
            Self::Open => return Ok(None),
            Self::Bearer(tokens) => &**tokens,
            // It has no token of its own: nobody may.
            Self::Routes => &[],
        };
        let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let sent = sent.and_then(|value| {
            let (scheme, sent) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(sent.trim())
        });
        if let Some(token) = sent.and_then(|sent| tokens.iter().find(|token| token.is(sent))) {
            return Ok(Some(&token.principal));
        }
        let message = match sent {
            Some(_) => {
                "the token is not the one of this server: use the one that was printed when it was started"
            }
            None => {
                "this server needs the token that was printed when it was started: send it as `Authorization: Bearer …`"
            }
        };
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, RpcError::invalid_request(message));
        let mut response = refused(&refusal);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Err(Box::new(response))
    }
}

impl BearerToken {
    fn new(principal: &str, token: &str, printed: Option<Box<str>>) -> Result<Self, Failure> {
        let random = SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).map_err(|_| no_random_numbers())?;
        let tag = hmac::sign(&key, token.as_bytes());
        Ok(Self { principal: principal.into(), printed, key, tag })
    }

    /// Compares in a time that does not depend on how much of the text is right.
    fn is(&self, sent: &str) -> bool {
        hmac::verify(&self.key, sent.as_bytes(), self.tag.as_ref()).is_ok()
    }
}

fn no_random_numbers() -> Failure {
    Failure::internal(&"the system's random number generator failed")
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn only_the_token_itself_is_accepted() {
        let access = Access::random().unwrap();
        let token = access.token().unwrap().to_owned();
        for accepted in [format!("Bearer {token}"), format!("bearer {token}")] {
            assert_eq!(access.check(&sent(&accepted)).ok(), Some(Some(PRINCIPAL)), "{accepted}");
        }
        for other in [
            token.clone(),
            format!("Basic {token}"),
            format!("Bearer {token}x"),
            format!("Bearer {}", &token[1..]),
            "Bearer ".into(),
        ] {
            let refused = access.check(&sent(&other)).err().unwrap();
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{other}");
            assert_eq!(refused.headers()[header::WWW_AUTHENTICATE], "Bearer");
        }
        assert!(access.check(&HeaderMap::new()).is_err());
        assert!(matches!(Access::Open.check(&HeaderMap::new()), Ok(None)));
        assert!(!format!("{access:?}").contains(&token));
    }
}
