use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;

use super::answer::Answer;
use crate::shared::noise::sha256;

/// The request that a DPoP proof is checked against: RFC 9449 §4.3.
#[derive(Debug)]
pub(super) struct ExpectedProof<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a str,
    pub(super) nonce: &'a str,
}

impl ExpectedProof<'_> {
    /// Checks a proof and returns the thumbprint of its key.
    pub(super) fn check(&self, proof: &str) -> Result<String, Answer> {
        let refused = || Answer::refused("invalid_dpop_proof", "the proof is invalid");
        let (header, claims) = read(proof).ok_or_else(refused)?;
        if header["typ"] != "dpop+jwt" || claims["htm"] != self.method || claims["htu"] != self.url {
            return Err(refused());
        }
        if claims["nonce"] != self.nonce {
            let refused = Answer::refused("use_dpop_nonce", "the proof does not contain the nonce");
            return Err(Answer { nonce: Some(self.nonce.to_owned()), ..refused });
        }
        thumbprint(&header["jwk"]).ok_or_else(refused)
    }
}

/// Verifies a token with the key in its header. Returns its header and claims.
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

/// Returns the thumbprint of a key: RFC 7638.
fn thumbprint(jwk: &Value) -> Option<String> {
    let (x, y) = (jwk["x"].as_str()?, jwk["y"].as_str()?);
    Some(sha256(format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#).as_bytes()))
}
