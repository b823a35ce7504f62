use pintle::Result;

use crate::shared::{noise, secret::Secret};

/// A code verifier and its challenge, which tie the redemption of a code to its request: RFC 7636.
#[derive(Debug)]
pub(crate) struct Pkce {
    pub(crate) verifier: Secret,
    pub(crate) challenge: String,
}

impl Pkce {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self::of(noise::random()?))
    }

    fn of(verifier: String) -> Self {
        Self { challenge: noise::sha256(verifier.as_bytes()), verifier: verifier.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn no_two_are_alike() {
        let (one, other) = (Pkce::new().unwrap(), Pkce::new().unwrap());
        assert_ne!(one.verifier, other.verifier);
        assert_eq!(one.verifier.reveal().len(), 43);
    }
}
