use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::{Error, Result};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};

use super::secret::Secret;

/// What proves that the one who redeems a code is the one who asked for it: RFC 7636.
#[derive(Debug)]
pub(super) struct Pkce {
    pub(super) verifier: Secret,
    pub(super) challenge: String,
}

impl Pkce {
    pub(super) fn new() -> Result<Self> {
        Ok(Self::of(random()?))
    }

    fn of(verifier: String) -> Self {
        Self { challenge: sha256(verifier.as_bytes()), verifier: verifier.into() }
    }
}

/// 256 bits that nobody can guess.
pub(super) fn random() -> Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::Io(std::io::Error::other("the system has no random numbers to give")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A digest in base64url.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, bytes))
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
