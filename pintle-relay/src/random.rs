use ring::{
    error::Unspecified,
    rand::{SecureRandom as _, SystemRandom},
};

/// Random bytes of the system, that nobody can guess.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Unspecified> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes)
}
