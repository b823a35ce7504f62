//! Proofs that a token is presented by its holder: RFC 9449 §4.3.

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::digest;
use serde_json::Value;

use super::{
    algorithm::Algorithm,
    jwk, noise,
    replay::{Replay, Use, Used, WINDOW},
    token::Signed,
};

/// The request that a proof has to be for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProofContext<'a> {
    pub(super) method: &'a str,
    /// The accepted addresses, without query: as received, and as the server is configured.
    pub(super) urls: &'a [String],
    /// The thumbprint of the key that the token is bound to.
    pub(super) thumbprint: &'a str,
    /// Issuer and subject of the token.
    pub(super) holder: (&'a str, &'a str),
    pub(super) now: u64,
}

/// The error for a proof that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProofError {
    /// The proof is not valid for the request, and why.
    Wrong(&'static str),
    /// The proof may be valid, but its holder has used too many to record another.
    TooMany,
}

impl From<&'static str> for ProofError {
    fn from(why: &'static str) -> Self {
        Self::Wrong(why)
    }
}

/// A proof that is valid for its request, and was not used in this process before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckedProof {
    /// The digest of the body, if the client has signed it.
    pub(super) content_digest: Option<String>,
    /// The value that identifies the proof to other processes, and its expiry.
    pub(super) nonce: ([u8; 32], u64),
}

/// The reason why a proof that was used is not accepted.
pub(super) const USED: &str = "the proof was used before; create one for each request";

/// Checks a proof for a request with this token.
pub(super) fn check(
    proof: &str,
    token: &str,
    proven: &ProofContext<'_>,
    seen: &Replay,
) -> Result<CheckedProof, ProofError> {
    let signed = Signed::parse(proof).ok_or("the proof is not a JWT")?;
    if signed.header.typ.as_deref() != Some("dpop+jwt") {
        return Err("the proof is not of the type `dpop+jwt`".into());
    }
    if signed.header.crit.is_some() {
        return Err("the proof has a `crit` header, which is not supported".into());
    }
    let algorithm =
        Algorithm::named(&signed.header.alg).ok_or("the signature algorithm of the proof is not accepted")?;
    let jwk = signed.header.jwk.as_ref().ok_or("the proof has no `jwk`")?;
    let (key, thumbprint) = jwk::alone(jwk).ok_or("the `jwk` of the proof is not a public key")?;
    // Before the signature: anybody can bring a key whose signatures take long to check.
    if thumbprint != proven.thumbprint {
        return Err("the token is bound to another key than the one of the proof".into());
    }
    if !key.verifies(algorithm, signed.covered(proof), &signed.signature) {
        return Err("the signature of the proof is invalid".into());
    }
    let text = |name: &str| signed.claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(proven.method) {
        return Err("the proof is for another method".into());
    }
    let url = text("htu").and_then(|url| url.split(['?', '#']).next()).unwrap_or_default();
    if !proven.urls.iter().any(|ours| same(ours, url)) {
        return Err("the proof is for another address".into());
    }
    if text("ath") != Some(&noise::sha256(token.as_bytes())) {
        return Err("the proof is for another token".into());
    }
    let issued = signed.claims.get("iat").and_then(Value::as_f64).unwrap_or_default() as u64;
    if issued.abs_diff(proven.now) > WINDOW {
        return Err("the proof is too old, or the clocks differ".into());
    }
    if seen.is_forgotten(issued) {
        return Err("the proof is from before the start of the server; create one for each request".into());
    }
    let jti = text("jti").filter(|jti| !jti.is_empty()).ok_or("the proof has no `jti`")?;
    let used = Used { holder: proven.holder, thumbprint: proven.thumbprint, jti, issued_at: issued };
    match seen.note(&used, proven.now) {
        Use::First => Ok(CheckedProof {
            content_digest: text("content_digest").map(str::to_owned),
            nonce: used.nonce(),
        }),
        Use::Again => Err(USED.into()),
        Use::TooMany => Err(ProofError::TooMany),
    }
}

/// Whether a body has the digest that the client signed (RFC 9530, SHA-256).
pub(super) fn is_digest_of(digest: &str, body: &[u8]) -> bool {
    let ours = STANDARD.encode(digest::digest(&digest::SHA256, body));
    digest.trim() == format!("sha-256=:{ours}:")
}

/// Whether two addresses are equivalent: scheme and host in any case, with or without the default port and a trailing `/`.
fn same(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<http::Uri>(), other.parse::<http::Uri>()) else { return false };
    let path = |uri: &http::Uri| uri.path().trim_end_matches('/').to_owned();
    pintle::proto::http::same_origin(&one, &other) && path(&one) == path(&other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            clock,
            kit::{ISSUER, RESOURCE, Signer},
        },
        *,
    };

    #[tokio::test]
    async fn a_proof_is_for_one_request_with_one_token() {
        let (ours, another) = (Signer::es256(), Signer::es256());
        let (_, thumbprint) = jwk::alone(&ours.jwk("1")).unwrap();
        let now = clock::now();
        let urls = [RESOURCE.to_owned()];
        let holder = (ISSUER, "ann");
        let proven = ProofContext { method: "POST", urls: &urls, thumbprint: &thumbprint, holder, now };
        let header = |signer: &Signer| json!({ "typ": "dpop+jwt", "jwk": signer.jwk("1") });
        let claims = |others: Value| {
            let mut claims = json!({
                "jti": others.to_string(), "htm": "POST", "htu": RESOURCE, "iat": now, "ath": noise::sha256(b"t0ken")
            });
            claims.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
            claims
        };
        let seen = Replay::default();
        let check = |proof: &str| match check(proof, "t0ken", &proven, &seen) {
            Ok(proof) => Ok(proof.content_digest),
            Err(ProofError::Wrong(why)) => Err(why.to_owned()),
            Err(ProofError::TooMany) => Err("too many".to_owned()),
        };
        let good = ours.sign(header(&ours), &claims(json!({})));
        assert_eq!(check(&good), Ok(None));
        let digest = ours.sign(header(&ours), &claims(json!({ "content_digest": "sha-256=:x:" })));
        assert_eq!(check(&digest), Ok(Some("sha-256=:x:".to_owned())));
        assert!(is_digest_of("sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:", b"{}"));
        assert!(!is_digest_of("sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:", b"{ }"));
        assert!(check(&good).unwrap_err().contains("used before"));
        for (others, expected) in [
            (json!({ "htu": "HTTPS://MCP.test:443/mcp?x=1#y" }), None),
            (json!({ "htu": "https://mcp.test/other" }), Some("another address")),
            (json!({ "htu": "https://evil.test/mcp" }), Some("another address")),
            (json!({ "htu": null }), Some("another address")),
            (json!({ "htu": "https://mcp.test/mcp/" }), None),
            (json!({ "htu": "http://mcp.test/mcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test:8443/mcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test@evil.test/mcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test./mcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test/x/../mcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test//mcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test/%6dcp" }), Some("another address")),
            (json!({ "htu": "https://mcp.test/MCP" }), Some("another address")),
            (json!({ "htu": ["https://mcp.test/mcp"] }), Some("another address")),
            (json!({ "htm": "GET" }), Some("another method")),
            (json!({ "htm": "post" }), Some("another method")),
            (json!({ "ath": noise::sha256(b"other") }), Some("another token")),
            (json!({ "ath": null }), Some("another token")),
            (json!({ "iat": now - 299 }), None),
            (json!({ "iat": now - 300 }), None),
            (json!({ "iat": now + 300 }), None),
            (json!({ "iat": now - 301 }), Some("too old")),
            (json!({ "iat": now + 301 }), Some("too old")),
            (json!({ "iat": null }), Some("too old")),
            (json!({ "jti": "" }), Some("no `jti`")),
            (json!({ "jti": 7 }), Some("no `jti`")),
            // What is kept of it is a digest, and a proof has a limit.
            (json!({ "jti": "j".repeat(1_000) }), None),
            (json!({ "jti": "j".repeat(100_000) }), Some("not a JWT")),
        ] {
            let message = check(&ours.sign(header(&ours), &claims(others.clone())));
            match expected {
                None => assert_eq!(message, Ok(None), "{others}"),
                Some(expected) => {
                    assert!(
                        message.as_ref().is_err_and(|message| message.contains(expected)),
                        "{others}: {message:?}"
                    )
                }
            }
        }
        let mut private = ours.jwk("1");
        private["d"] = json!("AA");
        for (at, (signer, header, expected)) in [
            (&another, header(&another), "another key"),
            (&another, header(&ours), "signature of the proof is invalid"),
            (&ours, json!({ "jwk": ours.jwk("1") }), "type `dpop+jwt`"),
            (&ours, json!({ "typ": "DPOP+JWT", "jwk": ours.jwk("1") }), "type `dpop+jwt`"),
            (&ours, json!({ "typ": "dpop+jwt", "jwk": ours.jwk("1"), "crit": [] }), "`crit`"),
            (&ours, json!({ "typ": "dpop+jwt" }), "has no `jwk`"),
            (&ours, json!({ "typ": "dpop+jwt", "jwk": private }), "not a public key"),
            (&ours, json!({ "typ": "dpop+jwt", "jwk": ours.jwk("1"), "alg": "none" }), "not accepted"),
            (&ours, json!({ "typ": "dpop+jwt", "jwk": ours.jwk("1"), "alg": "HS256" }), "not accepted"),
        ]
        .into_iter()
        .enumerate()
        {
            let message = check(&signer.sign(header, &claims(json!({ "jti": at.to_string() })))).unwrap_err();
            assert!(message.contains(expected), "{at}: {message}");
        }
        assert!(check("no.proof").unwrap_err().contains("not a JWT"));
        // A foreign key is refused before its signature is looked at.
        let forged = another.sign(header(&another), &claims(json!({ "jti": "forged" })));
        let (signed, _) = forged.rsplit_once('.').unwrap();
        assert!(check(&format!("{signed}.{}", "A".repeat(86))).unwrap_err().contains("another key"));
    }

    /// What was used before a restart is not known after it.
    #[tokio::test]
    async fn a_proof_from_before_the_start_is_refused() {
        let signer = Signer::es256();
        let (_, thumbprint) = jwk::alone(&signer.jwk("1")).unwrap();
        let started = 1_000_000;
        let urls = [RESOURCE.to_owned()];
        let seen = Replay::starting_at(started);
        for (issued, now, is_accepted) in [
            (started - 100, started, false),
            (started - 6, started, false),
            // A clock may be a little behind.
            (started - 5, started, true),
            (started, started, true),
            (started - 100, started + 150, false),
            (started + 100, started + 200, true),
        ] {
            let holder = (ISSUER, "ann");
            let proven = ProofContext { method: "POST", urls: &urls, thumbprint: &thumbprint, holder, now };
            let claims = json!({
                "jti": format!("{issued} {now}"), "htm": "POST", "htu": RESOURCE, "iat": issued, "ath": noise::sha256(b"t0ken")
            });
            let proof = signer.sign(json!({ "typ": "dpop+jwt", "jwk": signer.jwk("1") }), &claims);
            let checked = check(&proof, "t0ken", &proven, &seen);
            let forgotten = ProofError::from(
                "the proof is from before the start of the server; create one for each request",
            );
            assert_eq!(
                checked.map(drop),
                if is_accepted { Ok(()) } else { Err(forgotten) },
                "{issued} at {now}"
            );
        }
    }
}
