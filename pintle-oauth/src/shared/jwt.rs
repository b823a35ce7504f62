use std::fmt;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use pintle::{Error, Result};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use serde_json::{Value, json};

use super::noise;
#[cfg(feature = "client")]
use super::secret::Secret;

/// A key that signs with `ES256`.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl SigningKey {
    /// Parses the key in a PEM file with `BEGIN PRIVATE KEY`.
    pub(crate) fn from_pem(pem: &str) -> Result<Self> {
        let unread = || {
            Error::Misuse(
                "the private key cannot be parsed; use a P-256 key in PKCS#8, a PEM text that begins with \
                 `-----BEGIN PRIVATE KEY-----`"
                    .into(),
            )
        };
        let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----").ok_or_else(unread)?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----").ok_or_else(unread)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| unread())?;
        Self::from_der(&der).ok_or_else(unread)
    }

    /// Generates a key. Returns it with its private form, which [`restore`](Self::restore) takes.
    #[cfg(feature = "client")]
    pub(crate) fn generate() -> Result<(Self, Secret)> {
        let failed = || Error::Io(std::io::Error::other("the system failed to generate a key"));
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let der = der.map_err(|_| failed())?;
        let key = Self::from_der(der.as_ref()).ok_or_else(failed)?;
        Ok((key, Secret::new(STANDARD.encode(der.as_ref()))))
    }

    /// Restores a generated key.
    #[cfg(feature = "client")]
    pub(crate) fn restore(kept: &Secret) -> Option<Self> {
        Self::from_der(&STANDARD.decode(kept.reveal()).ok()?)
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random).ok()?;
        Some(Self { pair, random })
    }

    /// Returns the public key as a JWK.
    #[cfg(feature = "client")]
    pub(crate) fn jwk(&self) -> Value {
        use ring::signature::KeyPair;

        // 4, and then two coordinates of 32 bytes.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        json!({
            "kty": "EC",
            "crv": "P-256",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        })
    }

    /// Signs a token. The algorithm is added to the header.
    pub(crate) fn sign(&self, mut header: Value, claims: &Value) -> Result<String> {
        header["alg"] = json!("ES256");
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes());
        let signature =
            signature.map_err(|_| Error::Io(std::io::Error::other("the system failed to sign")))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Signs an assertion that authenticates a client: RFC 7523 §2.2.
    pub(crate) fn client_assertion(&self, client_id: &str, issuer: &str, now: u64) -> Result<String> {
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": issuer,
            "iat": now,
            "exp": now + 300,
            "jti": noise::random()?,
        });
        self.sign(json!({ "typ": "JWT" }), &claims)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

#[cfg(feature = "client")]
#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    use super::*;

    fn part(text: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn what_is_signed_can_be_checked() {
        let (key, kept) = SigningKey::generate().unwrap();
        let token = key.client_assertion("me", "https://as", 1000).unwrap();
        let parts: Vec<_> = token.split('.').collect();
        assert_eq!(part(parts[0]), json!({ "typ": "JWT", "alg": "ES256" }));
        let claims = part(parts[1]);
        assert_eq!((&claims["aud"], &claims["exp"]), (&json!("https://as"), &json!(1300)));
        let again = SigningKey::restore(&kept).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, again.pair.public_key().as_ref());
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        public.verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &signature).unwrap();
    }

    #[test]
    fn a_key_is_read_from_pem() {
        let (_, kept) = SigningKey::generate().unwrap();
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", kept.reveal());
        assert!(SigningKey::from_pem(&pem).is_ok());
        for pem in
            ["", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----"]
        {
            assert!(SigningKey::from_pem(pem).is_err(), "{pem}");
        }
    }
}
