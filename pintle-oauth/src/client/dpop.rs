use std::sync::{Mutex, PoisonError};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use pintle::Result;
use ring::digest;
use serde_json::json;

use crate::shared::{address, clock, jwt::SigningKey, noise, secret::Secret};

/// The header of a proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The header with the nonce of the next proof.
pub(crate) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The limit of servers whose nonces are kept: the authorization server, the resource server, and two more.
const SERVERS: usize = 4;

/// The key that tokens are bound to, which signs the proofs of possession: RFC 9449.
#[derive(Debug)]
pub(crate) struct Dpop {
    key: SigningKey,
    pub(crate) kept: Secret,
    /// The nonce for the next proof, by origin.
    nonces: Mutex<Vec<(String, String)>>,
}

/// A request that a proof is for.
#[derive(Debug)]
pub(crate) struct ProofRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Uri,
    /// The access token and the body, where the request has them.
    pub(crate) with: Option<(&'a Secret, &'a [u8])>,
}

impl Dpop {
    pub(crate) fn new() -> Result<Self> {
        let (key, kept) = SigningKey::generate()?;
        Ok(Self { key, kept, nonces: Mutex::default() })
    }

    pub(crate) fn restore(kept: &Secret) -> Option<Self> {
        Some(Self { key: SigningKey::restore(kept)?, kept: kept.clone(), nonces: Mutex::default() })
    }

    /// Signs a proof for this request.
    pub(crate) fn proof(&self, proven: &ProofRequest<'_>) -> Result<HeaderValue> {
        let origin = address::origin(proven.url);
        let mut claims = json!({
            "jti": noise::random()?,
            "htm": proven.method,
            "htu": format!("{origin}{}", proven.url.path()),
            "iat": clock::now(),
        });
        if let Some((token, body)) = proven.with {
            claims["ath"] = json!(noise::sha256(token.reveal().as_bytes()));
            let digest = STANDARD.encode(digest::digest(&digest::SHA256, body));
            claims["content_digest"] = json!(format!("sha-256=:{digest}:"));
        }
        {
            let nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, nonce)) = nonces.iter().find(|(server, _)| *server == origin) {
                claims["nonce"] = json!(nonce);
            }
        }
        let proof = self.key.sign(json!({ "typ": "dpop+jwt", "jwk": self.key.jwk() }), &claims)?;
        let mut proof = HeaderValue::try_from(proof).map_err(|_| {
            pintle::Error::Misuse(
                "the DPoP proof contains characters that are not allowed in a header".into(),
            )
        })?;
        proof.set_sensitive(true);
        Ok(proof)
    }

    /// Stores the nonce for the next proof. Returns whether it is a new one.
    pub(crate) fn note(&self, url: &Uri, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok()) else { return false };
        let origin = address::origin(url);
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (origin, nonce.to_owned());
        if nonces.contains(&pair) {
            return false;
        }
        nonces.retain(|(server, _)| *server != pair.0);
        if nonces.len() >= SERVERS {
            nonces.remove(0);
        }
        nonces.push(pair);
        true
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::Value;

    use super::*;

    fn read(proof: &HeaderValue) -> (Value, Value) {
        let parts: Vec<_> = proof.to_str().unwrap().split('.').collect();
        let part = |text: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap();
        (part(parts[0]), part(parts[1]))
    }

    #[test]
    fn a_proof_is_for_one_request() {
        let dpop = Dpop::new().unwrap();
        let url = "https://h:8443/mcp?q=1".parse().unwrap();
        let token = Secret::new("t0ken");
        let proven = ProofRequest { method: "POST", url: &url, with: Some((&token, b"{}")) };
        let (header, claims) = read(&dpop.proof(&proven).unwrap());
        assert_eq!(header["typ"], "dpop+jwt");
        assert_eq!(header["jwk"].get("d"), None);
        assert_eq!(claims["htu"], "https://h:8443/mcp");
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["ath"], noise::sha256(b"t0ken"));
        assert_eq!(claims["content_digest"], "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:");
        assert_ne!(claims["jti"], read(&dpop.proof(&proven).unwrap()).1["jti"]);
    }

    #[test]
    fn a_nonce_is_for_the_server_that_gave_it() {
        let dpop = Dpop::new().unwrap();
        let (one, other) = ("https://a/x".parse().unwrap(), "https://b/x".parse().unwrap());
        let headers = [(NONCE, HeaderValue::from_static("n1"))].into_iter().collect();
        assert!(dpop.note(&one, &headers));
        assert!(!dpop.note(&one, &headers));
        let nonce = |url| {
            read(&dpop.proof(&ProofRequest { method: "GET", url, with: None }).unwrap()).1["nonce"].clone()
        };
        assert_eq!(nonce(&one), "n1");
        assert_eq!(nonce(&other), Value::Null);
        assert!(dpop.note(&other, &headers));
        let newer = [(NONCE, HeaderValue::from_static("n2"))].into_iter().collect();
        assert!(dpop.note(&one, &newer));
        assert_eq!((nonce(&one), nonce(&other)), ("n2".into(), "n1".into()));
    }

    #[test]
    fn a_stored_key_signs_as_the_same_client() {
        let dpop = Dpop::new().unwrap();
        let url = "https://h/mcp".parse().unwrap();
        let key = |dpop: &Dpop| {
            read(&dpop.proof(&ProofRequest { method: "GET", url: &url, with: None }).unwrap()).0["jwk"]
                .clone()
        };
        assert_eq!(key(&Dpop::restore(&dpop.kept).unwrap()), key(&dpop));
        assert_ne!(key(&Dpop::new().unwrap()), key(&dpop));
        assert!(Dpop::restore(&Secret::new("no key")).is_none());
    }
}
