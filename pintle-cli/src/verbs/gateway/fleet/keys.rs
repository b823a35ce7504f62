use pintle::server::StateKeys;
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

use crate::failure::Failure;

/// The keys of a gateway: the first seals, all of them open.
#[derive(Clone)]
pub(in super::super) struct GatewayKeys {
    first: [u8; 32],
    others: Vec<[u8; 32]>,
}

impl GatewayKeys {
    /// Creates a key that nobody else has.
    pub(in super::super) fn random() -> Result<Self, Failure> {
        let mut first = [0; 32];
        let filled = SystemRandom::new().fill(&mut first);
        filled.map_err(|_| Failure::internal(&"the system's random number generator failed"))?;
        Ok(Self { first, others: Vec::new() })
    }

    /// Reads the key of a text with 64 hexadecimal digits. `place` says where it was.
    pub(super) fn parse(place: &str, text: &str) -> Result<Self, Failure> {
        let first = key(text.trim()).ok_or_else(|| {
            let message = format!("{place} is not a key of 64 hexadecimal digits");
            Failure::usage(message, "openssl rand -hex 32")
        })?;
        Ok(Self { first, others: Vec::new() })
    }

    /// Returns the text of the first key.
    pub(super) fn text(&self) -> String {
        self.first.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n"
    }

    /// Adds keys that open, but do not seal.
    pub(super) fn and(mut self, more: Self) -> Self {
        self.others.push(more.first);
        self.others.extend(more.others);
        self
    }

    /// Returns the keys of what is in stores.
    pub(super) fn of_stores(&self) -> StateKeys {
        self.derived(|key| *key)
    }

    /// Returns the keys of the server at a path. What it seals is of no use at another one, which may have other rules.
    pub(in super::super) fn of_path(&self, path: &str) -> StateKeys {
        self.derived(|key| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key);
            let mut derived = [0; 32];
            derived.copy_from_slice(hmac::sign(&key, path.as_bytes()).as_ref());
            derived
        })
    }

    fn derived(&self, derive: impl Fn(&[u8; 32]) -> [u8; 32]) -> StateKeys {
        let first = StateKeys::from(derive(&self.first));
        self.others.iter().fold(first, |keys, other| keys.and(StateKeys::from(derive(other))))
    }
}

/// Returns the key of 64 hexadecimal digits.
fn key(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_64_hexadecimal_digits() {
        assert_eq!(key(&"0f".repeat(32)), Some([15; 32]));
        for wrong in ["", "0f", &"0g".repeat(32), &"é".repeat(32), &"+f".repeat(32)] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
        let keys = GatewayKeys { first: [15; 32], others: Vec::new() };
        assert_eq!(keys.text(), "0f".repeat(32) + "\n");
    }

    #[test]
    fn what_one_path_seals_another_does_not_open_and_an_older_key_does() {
        let old = GatewayKeys { first: [1; 32], others: Vec::new() };
        let new = GatewayKeys { first: [2; 32], others: Vec::new() }.and(old.clone());
        let sealed = old.of_path("/mcp").seal_value("it", b"plain").unwrap();
        assert_eq!(new.of_path("/mcp").open_value("it", &sealed).as_deref(), Some(&b"plain"[..]));
        assert_eq!(new.of_path("/mcp/one").open_value("it", &sealed), None);
        assert_eq!(new.of_stores().open_value("it", &sealed), None);
    }
}
