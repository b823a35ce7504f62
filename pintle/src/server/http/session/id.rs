use std::{fmt, hash::Hasher};

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
        if text.len() != 32 {
            return None;
        }
        // One pass, where a check and `from_str_radix` are two; in halves, because shifting 128 bits takes twice as long (see
        // `bench/LEDGER.md`).
        let half = |text: &[u8]| {
            text.iter().fold((0_u64, 0), |(number, seen), byte| {
                let digit = DIGITS[usize::from(*byte)];
                (number << 4 | u64::from(digit & 15), seen | digit)
            })
        };
        let (high, low) = text.as_bytes().split_at(16);
        let ((high, seen), (low, also)) = (half(high), half(low));
        ((seen | also) < NO_DIGIT).then(|| Self(u128::from(high) << 64 | u128::from(low)))
    }
}

/// The value of each byte as a hexadecimal digit.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};
const NO_DIGIT: u8 = 16;

/// A hasher that returns the id itself: it is random already, and only ids of this server are in the table (see
/// `bench/LEDGER.md`).
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Nothing but ids is hashed with this.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, id: u128) {
        self.0 = id as u64;
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
