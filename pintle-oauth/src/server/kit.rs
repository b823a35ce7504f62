//! For tests: issuers that sign, and a web that answers by script.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{Request, Response};
use pintle::{Error, Result};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Reach, Web};

pub(super) const ISSUER: &str = "https://as.test";
pub(super) const RESOURCE: &str = "https://mcp.test/mcp";

/// A key that signs tokens.
pub(super) enum Signer {
    Ec { pair: EcdsaKeyPair, alg: &'static str, crv: &'static str },
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Signer {
    pub(super) fn es256() -> Self {
        Self::ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, "ES256", "P-256")
    }

    pub(super) fn es384() -> Self {
        Self::ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, "ES384", "P-384")
    }

    fn ec(by: &'static signature::EcdsaSigningAlgorithm, alg: &'static str, crv: &'static str) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(by, &random).unwrap();
        Self::Ec { pair: EcdsaKeyPair::from_pkcs8(by, der.as_ref(), &random).unwrap(), alg, crv }
    }

    pub(super) fn ed25519() -> Self {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap())
    }

    /// Always the same one: `ring` makes none.
    pub(super) fn rsa() -> Self {
        Self::Rsa(Box::new(RsaKeyPair::from_der(&STANDARD.decode(RSA).unwrap()).unwrap()))
    }

    pub(super) fn alg(&self) -> &'static str {
        match self {
            Self::Ec { alg, .. } => alg,
            Self::Ed(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    /// The public half.
    pub(super) fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Ec { pair, crv, .. } => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({ "kty": "EC", "crv": crv, "x": text(x), "y": text(y), "kid": kid })
            }
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref()), "kid": kid })
            }
            Self::Rsa(pair) => {
                let signature::RsaPublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
                json!({ "kty": "RSA", "n": text(&n), "e": text(&e), "kid": kid })
            }
        }
    }

    /// A token. `alg` is that of the key if the header has none.
    pub(super) fn sign(&self, mut header: Value, claims: &Value) -> String {
        let alg = header.get("alg").and_then(Value::as_str).unwrap_or(self.alg()).to_owned();
        header["alg"] = json!(alg);
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Ec { pair, .. } => pair.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
            Self::Rsa(pair) => {
                let by: &'static dyn signature::RsaEncoding = match alg.as_str() {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(by, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// The claims of a good token, with these instead: `null` takes one away.
pub(super) fn claims(others: &Value) -> Value {
    let now = super::clock::now();
    let mut claims = json!({ "iss": ISSUER, "aud": RESOURCE, "sub": "ann", "iat": now, "exp": now + 600 });
    let all = claims.as_object_mut().unwrap();
    all.extend(others.as_object().unwrap().clone());
    all.retain(|_, value| !value.is_null());
    claims
}

/// A scripted web that records its requests.
#[derive(Clone, Default)]
pub(super) struct Script(Arc<Mutex<Scripted>>);

#[derive(Default)]
struct Scripted {
    answers: HashMap<String, (u16, Value)>,
    asked: Vec<String>,
    gate: Option<Arc<Notify>>,
}

impl Script {
    /// An issuer that publishes these keys.
    pub(super) fn issuer(keys: &Value) -> Self {
        let script = Self::default();
        let metadata = json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{ISSUER}/jwks"),
            "introspection_endpoint": format!("{ISSUER}/introspect"),
        });
        script.answers("/.well-known/oauth-authorization-server", 200, &metadata);
        script.publishes(keys);
        script
    }

    pub(super) fn publishes(&self, keys: &Value) {
        self.answers("/jwks", 200, &json!({ "keys": keys }));
    }

    /// Status 0 is no answer at all.
    pub(super) fn answers(&self, path: &str, status: u16, body: &Value) {
        self.0.lock().unwrap().answers.insert(path.to_owned(), (status, body.clone()));
    }

    /// Answers wait until this is notified.
    pub(super) fn waits_for(&self, gate: &Arc<Notify>) {
        self.0.lock().unwrap().gate = Some(gate.clone());
    }

    /// Returns the number of requests for this path.
    pub(super) fn count(&self, path: &str) -> usize {
        self.0.lock().unwrap().asked.iter().filter(|asked| asked.starts_with(path)).count()
    }

    /// What was asked last: path, body and `Authorization`.
    pub(super) fn last(&self) -> String {
        self.0.lock().unwrap().asked.last().cloned().unwrap_or_default()
    }
}

impl Web for Script {
    async fn send(&self, request: Request<Bytes>, _: Reach) -> Result<Response<Bytes>> {
        let path = request.uri().path().to_owned();
        let gate = {
            let mut scripted = self.0.lock().unwrap();
            let body = String::from_utf8_lossy(request.body()).into_owned();
            let by = request.headers().get("authorization").map_or("", |value| value.to_str().unwrap());
            scripted.asked.push(format!("{path} {body} {by}"));
            scripted.gate.clone()
        };
        if let Some(gate) = gate {
            gate.notified().await;
        }
        let answer = self.0.lock().unwrap().answers.get(&path).cloned().unwrap_or((404, Value::Null));
        match answer {
            (0, _) => Err(Error::Io(std::io::Error::other("nobody is there"))),
            (status, body) => {
                Ok(Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap())
            }
        }
    }

    async fn addresses(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// A key for tests, worth nothing.
const RSA: &str = "\
    MIIEowIBAAKCAQEAswjy7UZEYSqYYMH2quPwXaWtcjvt3ychmlrgEFmhpED9KinkeyQX+UKX9xh4vuWoWRyTiEQseQhW8INkZLam9CZhYDyHW9\
    0oXJd1kKME+KePG1LO51vG5ORlCknsd87ccEBAjApC914UL9IMeAB2xY+rJDsVnTZyvLCLVmAQyKb4khcAPhEQgnyapGlsL0RKWTr+L9lFI5ZX\
    vrkoCN6pypJAZZZ19GQPIDnlvqlx1hMYfgPrSgz4RRxf+/k25FooHYf0RvU9Sz6/NYxweJs1dYDX+SWKQmS49v5wsdgKIxZoejYGfam2NUbVSy\
    rdcZScwE8mBMHMSIv8lhkhlshylQIDAQABAoIBAAbdOE3MkeE/0X50MVGKp7PkyZTwTfBuVFAnXSEuA+UuRgaQe0gVXC3xqwM4QaOKs+emvClP\
    Tn0yyqfcrG6yv2KWTh7Ic1AcVz3QOMZbhFycNVUQ2bSZGjO7EKdSVOn1rmdHWgeEeojNZ0IQxZWcPvGCzpxMVPR6xUS4Er+Js1sIq2IrbIdaVc\
    Q5sFM3G3TiqGy1KQCQsgpzI7/CvcdthwatN/ADnp4OW1giGjohCptEUf/OP9aC5QaznxOV5RzNEYCKwMfKQCw7o5KFtjAIycf5BTGfbckPFO+w\
    hGyKbkDAruwh2qYFunJdKLYlOmzaxqYT1nQqW0hSy6dVIJ7FgokCgYEA2thSXeKJpYKFam5IbYIxWlllQhJEpnVMQiDhQA6N+giqMNly9AsTpV\
    vvD68+YtjPRJqtQ9nsLojrOqKfvx/uRG4xTcFPi09QBIopHSHwb7KucIn/lp9wX9yZBV8Kp6RUMWVXy4AxhkhU1VnpaW+mXA/7gfqMYdcP6WZO\
    0GW+Br8CgYEA0W5cGSSPQDgxaOcOllkKygcCUlH6yBCWv6u3sJqMEpBdtTiA1isZhmFRUe1lRzKgJCjdpwVY3wk30yz3C37rE9BSpOeN7RhpR/\
    /04Q0B75d5PR7vrIo102vBTo1meBwbkP7q/P1LlQ2FNtOlyNWXOgNqEaqghJeUzRPczAF7T6sCgYBpZaONmcvnDUxJ7OEu9HPmaoVs47VyYa2f\
    b4xsOFZCZCfrLN7DEA6fJf6llCW8n2R7Su9FbU/lPYXkkGvVNYCgLl3Kb95qXoFQHmYcpLrSYMDIbH3OwezyDiEYSCSuhmMSAxfcZ1nyrSVGN2\
    5FnEMHtZ7Qg6VWfagpJV+x2D5DqwKBgAS579wlZhI18m+Cn2KnOcYbaGMBNJ6lOTG0J14V7slQdrzrPIUYzeepdJNbvyhfLRwDzBTD2yCVbawX\
    XK/mulllHyhXjW1nWqDkVttpVrzYd0T42MHVEKfny6IBMOnPAJRCHH1/HeCMQJBfMGOa5mHJx/AEIME9Rn9mTlpQQj8nAoGBAIJ9rmEEyy02xq\
    78UZY8Q/WA1Zj9gU2UH80oTaf6fWSnq6SO6jnPsHD2iuR8ki/lh44lkvsWTJqLZxilqtAtEasVBkWIL7YxAq1IJdiUZZo+dNMLVZueqtN1hgQG\
    pY4XjyXLJAvk/pNEcOLSCY5ZOaF7XWleV4gZOC21iu3lrYmz";
