//! Random values and digests.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::{Error, Result};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};

/// Returns 256 random bits in base64url.
pub(crate) fn random() -> Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::Io(std::io::Error::other("the system's random number generator failed")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the SHA-256 digest in base64url.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, bytes))
}
