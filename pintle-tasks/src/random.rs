use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    error::Unspecified,
    rand::{SecureRandom as _, SystemRandom},
};

/// Returns a name of `N` random bytes, which nobody can guess.
pub(super) fn name<const N: usize>() -> Result<String, Unspecified> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
