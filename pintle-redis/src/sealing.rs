//! The values of keys: a byte with the format and whether the value is sealed, and the value.
//!
//! Processes of two versions may share a Redis while one is rolled out. A change of a value that readers of the format before can ignore,
//! such as a new member of a record, does not change the format. Any other needs two releases: the first one reads the new format
//! ([`NEWEST`]), the second one writes it ([`WRITTEN`]). A value of a format that is not known is an error, and never an absent value.

use std::io;

use pintle::server::StateKeys;

/// The formats that are read, and the one that is written.
const OLDEST: u8 = 0;
const NEWEST: u8 = 1;
const WRITTEN: u8 = 0;

/// The bit of the first byte that says that a value is sealed. The others are the format.
const SEALED: u8 = 1;

/// Encodes a value. `bound` is where it belongs: it cannot be opened elsewhere.
pub(crate) fn encode(keys: Option<&StateKeys>, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
    encode_as(WRITTEN, keys, bound, value)
}

fn encode_as(format: u8, keys: Option<&StateKeys>, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
    let Some(keys) = keys else { return Ok([&[format << 1], value].concat()) };
    Ok([&[format << 1 | SEALED], &keys.seal_value(bound, value)?[..]].concat())
}

/// Decodes a value. With keys, a value that is not sealed is refused.
pub(crate) fn decode(keys: Option<&StateKeys>, bound: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let refused = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
    let Some((first, value)) = bytes.split_first() else { return Err(refused("a value in Redis is empty")) };
    let format = first >> 1;
    if !(OLDEST..=NEWEST).contains(&format) {
        let reason = format!(
            "a value in Redis has format {format}, and this version reads {OLDEST} to {NEWEST}: update this process, or the other ones"
        );
        return Err(refused(&reason));
    }
    match (keys, first & SEALED != 0) {
        (None, false) => Ok(value.to_vec()),
        (None, true) => Err(refused("a value in Redis is sealed: set the keys of the fleet")),
        (Some(keys), true) => keys
            .open_value(bound, value)
            .ok_or_else(|| refused("a value in Redis cannot be opened with the keys of this process")),
        (Some(_), false) => Err(refused("a value in Redis is not sealed, and the keys of the fleet are set")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_is_opened_where_it_belongs_and_nowhere_else() {
        let keys = StateKeys::from([1; 32]);
        let sealed = encode(Some(&keys), "here", b"value").unwrap();
        assert!(!sealed.windows(5).any(|part| part == b"value"));
        assert_eq!(decode(Some(&keys), "here", &sealed).unwrap(), b"value");
        assert!(decode(Some(&keys), "there", &sealed).is_err());
        assert!(decode(Some(&StateKeys::from([2; 32])), "here", &sealed).is_err());
        assert!(decode(None, "here", &sealed).is_err());
        let plain = encode(None, "here", b"value").unwrap();
        assert_eq!(decode(None, "here", &plain).unwrap(), b"value");
        assert!(decode(Some(&keys), "here", &plain).is_err(), "it may be forged");
        assert!(decode(None, "here", b"").is_err());
    }

    #[test]
    fn the_format_before_is_read_and_one_that_is_not_known_is_named() {
        let keys = StateKeys::from([1; 32]);
        for keys in [None, Some(&keys)] {
            for format in [OLDEST, WRITTEN, NEWEST] {
                let value = encode_as(format, keys, "here", b"value").unwrap();
                assert_eq!(decode(keys, "here", &value).unwrap(), b"value");
            }
            let later = encode_as(NEWEST + 1, keys, "here", b"value").unwrap();
            let error = decode(keys, "here", &later).unwrap_err();
            assert!(error.to_string().contains("has format 2, and this version reads 0 to 1"), "{error}");
        }
    }
}
