//! Published public keys: RFC 7517.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    algorithm::{Algorithm, PublicKey},
    noise,
};

/// The limit of keys of an issuer. More are ignored.
const MAX_KEYS: usize = 64;
/// The limit of keys that a token without a `kid` is verified with: each costs a calculation.
const MAX_TRIED: usize = 8;

/// The limit of bytes of an RSA key's modulus: signatures of larger ones are not checked.
const MAX_MODULUS: usize = 1024;

/// The keys of an authorization server.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<VerificationKey>);

#[derive(Clone, Debug)]
struct VerificationKey {
    kid: Option<String>,
    /// The only algorithm of this key, if it is restricted to one.
    alg: Option<String>,
    key: PublicKey,
}

/// A document of keys.
#[derive(Deserialize)]
pub(super) struct Published {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl KeySet {
    /// Takes the keys that can verify signatures; others are ignored.
    pub(super) fn of(published: Published) -> Self {
        let keys = published.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        Self(keys.filter_map(Jwk::for_signatures).take(MAX_KEYS).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a key with this id for this algorithm.
    pub(super) fn knows(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        self.fitting(kid, algorithm).next().is_some()
    }

    /// Whether one of the matching keys made this signature.
    pub(super) fn verifies(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        self.fitting(kid, algorithm)
            .take(MAX_TRIED)
            .any(|key| key.key.verifies(algorithm, message, signature))
    }

    fn fitting(&self, kid: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &VerificationKey> {
        self.0.iter().filter(move |key| {
            let named = kid.is_none() || key.kid.as_deref() == kid;
            let meant = key.alg.as_deref().is_none_or(|name| Algorithm::named(name) == Some(algorithm));
            named && meant && key.key.goes_with(algorithm)
        })
    }
}

impl Jwk {
    fn for_signatures(self) -> Option<VerificationKey> {
        let signs = self.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let checks = self.key_ops.as_ref().is_none_or(|all| all.iter().any(|each| each == "verify"));
        if !signs || !checks {
            return None;
        }
        let key = self.public_key()?;
        Some(VerificationKey { kid: self.kid, alg: self.alg, key })
    }

    fn public_key(&self) -> Option<PublicKey> {
        let number = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_ref()?).ok();
        // Uncompressed: 4, and then two coordinates of their full size.
        let point = |size: usize| {
            let (x, y) = (number(&self.x)?, number(&self.y)?);
            (x.len() == size && y.len() == size).then(|| [&[4], &x[..], &y[..]].concat())
        };
        Some(match (self.kty.as_str(), self.crv.as_deref()) {
            ("EC", Some("P-256")) => PublicKey::P256(point(32)?),
            ("EC", Some("P-384")) => PublicKey::P384(point(48)?),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(number(&self.x).filter(|x| x.len() == 32)?),
            ("RSA", _) => {
                let n = number(&self.n)?;
                // Some issuers add a leading zero, as for a signed number.
                let zeros = n.iter().take_while(|byte| **byte == 0).count();
                let (n, e) = (&n[zeros..], number(&self.e)?);
                (n.len() <= MAX_MODULUS && e.len() <= MAX_MODULUS)
                    .then(|| PublicKey::Rsa { n: n.to_vec(), e })?
            }
            _ => return None,
        })
    }
}

/// Parses a single key and returns it with its thumbprint (RFC 7638). `None`: it is not a public key, or contains a private
/// one.
pub(super) fn alone(jwk: &Value) -> Option<(PublicKey, String)> {
    if ["d", "k", "p"].iter().any(|member| jwk.get(member).is_some()) {
        return None;
    }
    let read: Jwk = serde_json::from_value(jwk.clone()).ok()?;
    let key = read.public_key()?;
    let Jwk { kty, crv, x, y, n, e, .. } = read;
    // Members in the order of their names (RFC 7638 §3.3): a map prints them as they are written here.
    let members = match key {
        PublicKey::P256(_) | PublicKey::P384(_) => json!({ "crv": crv, "kty": kty, "x": x, "y": y }),
        PublicKey::Ed25519(_) => json!({ "crv": crv, "kty": kty, "x": x }),
        PublicKey::Rsa { .. } => json!({ "e": e, "kty": kty, "n": n }),
    };
    Some((key, noise::sha256(members.to_string().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(keys: &Value) -> KeySet {
        KeySet::of(serde_json::from_value(json!({ "keys": keys })).unwrap())
    }

    #[test]
    fn the_thumbprint_is_that_of_the_rfc() {
        // RFC 7638 §3.1.
        let key = json!({
            "kty": "RSA",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRX\
                  jBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqz\
                  s8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-\
                  G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
            "e": "AQAB", "alg": "RS256", "kid": "2011-04-29"
        });
        assert_eq!(alone(&key).unwrap().1, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn only_keys_that_check_signatures_are_taken() {
        let (x, y) = ("A".repeat(43), "A".repeat(43));
        let key = |more: Value| {
            let mut key = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "1" });
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            set(&json!([key])).knows(Some("1"), Algorithm::ES256)
        };
        assert!(key(json!({})));
        assert!(key(json!({ "use": "sig", "key_ops": ["verify"], "alg": "ES256" })));
        for other in [
            json!({ "use": "enc" }),
            json!({ "key_ops": ["sign"] }),
            json!({ "alg": "ES384" }),
            json!({ "alg": "none" }),
            json!({ "crv": "P-384" }),
            json!({ "x": "AA" }),
            json!({ "kid": "2" }),
            json!({ "kty": "RSA" }),
            json!({ "kty": 7 }),
        ] {
            assert!(!key(other.clone()), "{other}");
        }
        assert!(set(&json!([{ "kty": "oct", "k": "c2VjcmV0", "kid": "1" }, "?", null])).is_empty());
    }

    /// The document itself is bounded, and so is what is kept and calculated of it.
    #[test]
    fn many_keys_and_large_ones_are_bounded() {
        let key = |kid: &str, n: usize, e: usize| {
            let number = |bytes| URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
            json!({ "kty": "RSA", "n": number(n), "e": number(e), "kid": kid })
        };
        for (n, e, is_taken) in
            [(1024, 3, true), (1025, 3, false), (1 << 20, 3, false), (256, 1 << 20, false)]
        {
            assert_eq!(set(&json!([key("1", n, e)])).knows(Some("1"), Algorithm::RS256), is_taken, "{n} {e}");
            assert_eq!(alone(&key("1", n, e)).is_some(), is_taken, "{n} {e}");
        }
        let many: Vec<_> = (0..100_000).map(|_| key("1", 1, 1)).collect();
        let many = set(&json!(many));
        assert_eq!(many.0.len(), MAX_KEYS);
        assert_eq!(many.fitting(Some("1"), Algorithm::RS256).take(MAX_TRIED).count(), 8);
    }

    #[test]
    fn a_key_with_its_private_half_is_none() {
        let key = json!({ "kty": "EC", "crv": "P-256", "x": "A".repeat(43), "y": "A".repeat(43), "d": "AA" });
        assert!(alone(&key).is_none());
    }
}
