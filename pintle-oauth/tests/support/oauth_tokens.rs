//! Tokens and keys that somebody has tampered with.

use pintle_oauth::{
    server::{Jwt, Token, Verify},
    testing::{AuthorizationServer, Claims, Hosts},
};
use serde_json::json;

use super::{course::Course, nasty, run};

const ISSUER: &str = "https://as.test";
const RESOURCE: &str = "https://mcp.test/mcp";

/// Changes a token as these bytes say: every change is refused, and the token itself is good after that too. Keys of any
/// form are keys or are refused, and no token is good by keys that are not its issuer's.
pub(crate) fn play(course: &[u8]) {
    run(async {
        let mut course = Course(course);
        let login = AuthorizationServer::new(ISSUER);
        let jwt = Jwt::new(ISSUER).expect("it is an issuer").web(Hosts::new().host(ISSUER, login.clone()));
        let good = login.token(&Claims::new(RESOURCE).subject("ann"));
        let other = login.token(&Claims::new("https://other.test/mcp").subject("root"));
        while !course.0.is_empty() {
            let tampered = tamper(&good, &other, &mut course);
            if tampered != good {
                let verdict = jwt.verify(Token::new(tampered.as_str(), RESOURCE)).await;
                assert!(verdict.is_err(), "{tampered} {verdict:?}");
            }
            if let Ok(jwt) = jwt.clone().keys(keys(&mut course)) {
                assert!(jwt.verify(Token::new(good.as_str(), RESOURCE)).await.is_err());
            }
        }
        let principal = jwt.verify(Token::new(good, RESOURCE)).await.expect("it was not tampered with");
        assert_eq!(principal.subject(), "ann");
    });
}

fn tamper(good: &str, other: &str, course: &mut Course<'_>) -> String {
    let mut bytes = good.as_bytes().to_vec();
    let at = (course.below(256) * 256 + course.below(256)) % bytes.len();
    match course.below(8) {
        0 => bytes[at] = b"AZaz09-_."[course.below(9)],
        1 => bytes.truncate(at),
        2 => bytes.extend(course.bytes(4).iter().map(|byte| b"AZaz09-_.="[usize::from(byte % 10)])),
        3 => drop(bytes.remove(at)),
        4 => bytes.swap(at, 0),
        5 => bytes.insert(at, b"AZaz09-_."[course.below(9)]),
        6 => {
            // Parts of a token that is good elsewhere.
            let (ours, theirs): (Vec<_>, Vec<_>) = (good.split('.').collect(), other.split('.').collect());
            let mut part = |at: usize| if course.below(2) == 1 { theirs[at] } else { ours[at] };
            return [part(0), part(1), part(2)].join(".");
        }
        _ => bytes = course.bytes(64).to_vec(),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn keys(course: &mut Course<'_>) -> String {
    let mut key = match course.below(4) {
        0 => json!({ "kty": "EC", "crv": "P-256", "x": "A".repeat(43), "y": "A".repeat(43) }),
        1 => json!({ "kty": "OKP", "crv": "Ed25519", "x": "A".repeat(43) }),
        2 => json!({ "kty": "RSA", "n": "A".repeat(342), "e": "AQAB" }),
        _ => return String::from_utf8_lossy(course.bytes(48)).into_owned(),
    };
    for _ in 0..course.below(3) {
        key[course.of(&["kty", "crv", "x", "y", "n", "e", "kid", "use", "alg", "key_ops"])] = nasty(course);
    }
    json!({ "keys": [key, nasty(course)] }).to_string()
}
