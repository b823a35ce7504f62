use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;

use super::answer::Answer;
use crate::shared::noise::sha256;

/// What a client's proof that it has a key is checked against: RFC 9449 §4.3.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a str,
    pub(super) nonce: &'a str,
}

impl Wanted<'_> {
    /// The thumbprint of the key that a token is to be bound to.
    pub(super) fn check(&self, proof: &str) -> Result<String, Answer> {
        let refused = || Answer::refused("invalid_dpop_proof", "the proof proves nothing");
        let (header, claims) = read(proof).ok_or_else(refused)?;
        if header["typ"] != "dpop+jwt" || claims["htm"] != self.method || claims["htu"] != self.url {
            return Err(refused());
        }
        if claims["nonce"] != self.nonce {
            let refused = Answer::refused("use_dpop_nonce", "the proof does not hold the nonce");
            return Err(Answer { nonce: Some(self.nonce.to_owned()), ..refused });
        }
        thumbprint(&header["jwk"]).ok_or_else(refused)
    }
}

/// Header and claims of a token that the key in its header has signed.
fn read(token: &str) -> Option<(Value, Value)> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let part = |text: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok();
    let (header, claims): (Value, Value) = (part(header)?, part(claims)?);
    let mut point = vec![4];
    for coordinate in ["x", "y"] {
        point.extend(URL_SAFE_NO_PAD.decode(header["jwk"][coordinate].as_str()?).ok()?);
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed.as_bytes(), &signature).ok()?;
    Some((header, claims))
}

/// RFC 7638: the digest of what a key has to have, in the order of the alphabet.
fn thumbprint(jwk: &Value) -> Option<String> {
    let (x, y) = (jwk["x"].as_str()?, jwk["y"].as_str()?);
    Some(sha256(format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#).as_bytes()))
}
