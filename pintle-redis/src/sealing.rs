//! The values of keys, sealed or not.

use std::io;

use pintle::server::StateKeys;

const PLAIN: u8 = 0;
const SEALED: u8 = 1;

/// Encodes a value. `bound` is where it belongs: it cannot be opened elsewhere.
pub(crate) fn encode(keys: Option<&StateKeys>, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
    let Some(keys) = keys else { return Ok([&[PLAIN], value].concat()) };
    Ok([&[SEALED], &keys.seal_value(bound, value)?[..]].concat())
}

/// Decodes a value. With keys, a value that is not sealed is refused.
pub(crate) fn decode(keys: Option<&StateKeys>, bound: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let refused = |reason| io::Error::new(io::ErrorKind::InvalidData, reason);
    match (keys, bytes.split_first()) {
        (None, Some((&PLAIN, value))) => Ok(value.to_vec()),
        (None, Some((&SEALED, _))) => Err(refused("a value in Redis is sealed: set the keys of the fleet")),
        (Some(keys), Some((&SEALED, sealed))) => keys
            .open_value(bound, sealed)
            .ok_or_else(|| refused("a value in Redis cannot be opened with the keys of this process")),
        (Some(_), Some((&PLAIN, _))) => {
            Err(refused("a value in Redis is not sealed, and the keys of the fleet are set"))
        }
        _ => Err(refused("a value in Redis has an unknown format")),
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
}
