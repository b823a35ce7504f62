use std::fmt;

use ring::error::Unspecified;

use crate::server::random;

/// The id of a session: 128 bits, of which at least 96 are random.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(in crate::server::http) struct SessionId(u128);

impl SessionId {
    /// The id of transient sessions.
    pub(super) const NIL: Self = Self(0);

    /// Creates a random id. A prefix takes the place of its first 32 bits.
    pub(in crate::server::http) fn random(prefix: Option<u32>) -> Result<Self, Unspecified> {
        let id = random::bytes().map(u128::from_ne_bytes)?;
        Ok(Self(match prefix {
            Some(prefix) => u128::from(prefix) << 96 | id >> 32,
            None => id,
        }))
    }

    /// Parses an id in the form that `Display` writes.
    pub(in crate::server::http) fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
        // Without a branch for each digit: whether it is a letter cannot be predicted.
        let is_digit = |digit: &u8| digit.is_ascii_digit() | (b'a'..=b'f').contains(digit);
        let value = |digit: &u8| u64::from((digit & 0xf) + 9 * (digit >> 6));
        let half = |digits: &[u8]| digits.iter().fold(0, |half, digit| half << 4 | value(digit));
        let (high, low) = digits.split_at(16);
        let are_digits = digits.iter().fold(true, |all, digit| all & is_digit(digit));
        are_digits.then(|| Self(u128::from(half(high)) << 64 | u128::from(half(low))))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written_and_in_no_other_way() {
        let id = SessionId::random(None).unwrap();
        let text = id.to_string();
        assert!(SessionId::parse(&text) == Some(id));
        assert!(
            SessionId::parse(&text.to_uppercase()) != Some(id)
                || !text.bytes().any(|byte| byte.is_ascii_alphabetic())
        );
        for other in ["", "0", "+0000000000000000000000000000000", &text[1..], &format!("{text}0")] {
            assert!(SessionId::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_prefix_is_the_first_eight_digits_and_the_rest_is_random() {
        let texts: Vec<_> = (0..2).map(|_| SessionId::random(Some(0xa1)).unwrap().to_string()).collect();
        assert!(texts.iter().all(|text| text.starts_with("000000a1")), "{texts:?}");
        assert_ne!(texts[0], texts[1]);
    }
}
