//! The claims of a token and the rules for them: RFC 9068 and RFC 7519.

use pintle::types::JsonObject;
use serde_json::Value;

use super::{principal::Principal, verify::Rejection};

/// The rules for claims.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) issuer: &'a str,
    /// The accepted audiences.
    pub(super) audience: &'a [&'a str],
    /// The accepted clock skew in seconds.
    pub(super) skew: u64,
    pub(super) now: u64,
}

/// Checks the claims and returns the principal. The signature is checked elsewhere.
pub(super) fn check(claims: &JsonObject, rules: &Rules<'_>) -> Result<Principal, Rejection> {
    let Rules { issuer, audience, skew, now } = *rules;
    if claims.get("iss").and_then(Value::as_str) != Some(issuer) {
        return Err(invalid(format!("it was not issued by `{issuer}`")));
    }
    if !is_for(claims.get("aud"), audience) {
        let wanted = audience.first().copied().unwrap_or_default();
        return Err(invalid(format!("it was not issued for `{wanted}`: ask for one with that `resource`")));
    }
    let expires_at = seconds(claims, "exp")?.ok_or_else(|| invalid("it has no `exp`".into()))?;
    in_time(claims, expires_at, skew, now)?;
    principal(claims, issuer).map(|principal| principal.until(expires_at))
}

/// Checks that a token is valid at this time.
pub(super) fn in_time(claims: &JsonObject, expires_at: u64, skew: u64, now: u64) -> Result<(), Rejection> {
    if expires_at.saturating_add(skew) <= now {
        return Err(invalid("it has expired".into()));
    }
    for name in ["nbf", "iat"] {
        if seconds(claims, name)?.is_some_and(|from| from > now.saturating_add(skew)) {
            return Err(invalid("it is not valid yet: the clocks may differ".into()));
        }
    }
    Ok(())
}

/// Returns the principal of a token, with its grants.
pub(super) fn principal(claims: &JsonObject, issuer: &str) -> Result<Principal, Rejection> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let client = text("client_id").or_else(|| text("azp")).or_else(|| text("cid"));
    let subject =
        text("sub").or(client).ok_or_else(|| invalid("it has neither `sub` nor `client_id`".into()))?;
    let mut principal = Principal::new(issuer, subject)
        .granted(words(claims.get("scope")).chain(words(claims.get("scp"))))
        .claims(claims.clone());
    if let Some(client) = client {
        principal = principal.client(client);
    }
    match claims.get("cnf") {
        None | Some(Value::Null) => {}
        Some(bound) => match bound.get("jkt").and_then(Value::as_str) {
            Some(thumbprint) => principal = principal.bound_to(thumbprint),
            // A binding that is not checked would protect nothing.
            None => {
                return Err(invalid(
                    "it is bound to something other than a DPoP key, which is not supported".into(),
                ));
            }
        },
    }
    Ok(principal)
}

/// Whether a claim, a string or a list of strings, contains one of these audiences, byte for byte.
pub(super) fn is_for(named: Option<&Value>, audience: &[&str]) -> bool {
    let is = |value: &Value| value.as_str().is_some_and(|name| audience.contains(&name));
    match named {
        Some(Value::Array(all)) => all.iter().any(is),
        Some(one) => is(one),
        None => false,
    }
}

/// Returns a claim that is a point in time. `None`: it is absent. A claim that is not a number is an error, not an absence.
pub(super) fn seconds(claims: &JsonObject, name: &str) -> Result<Option<u64>, Rejection> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) if seconds >= 0.0 => Ok(Some(seconds as u64)),
            _ => Err(invalid(format!("its `{name}` is not a point in time"))),
        },
    }
}

/// Returns the words of a string, or the strings of a list.
fn words(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (text, list) = match value {
        Some(Value::String(text)) => (text.as_str(), &[][..]),
        Some(Value::Array(list)) => ("", list.as_slice()),
        _ => ("", &[][..]),
    };
    text.split(' ').chain(list.iter().filter_map(Value::as_str))
}

fn invalid(why: String) -> Rejection {
    Rejection::Invalid(why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn checked(others: &Value) -> Result<Principal, Rejection> {
        let mut claims =
            json!({ "iss": "https://as", "aud": "https://h/mcp", "sub": "ann", "exp": NOW + 10, "iat": NOW });
        let all = claims.as_object_mut().unwrap();
        all.extend(others.as_object().unwrap().clone());
        all.retain(|_, value| *value != "-");
        check(all, &Rules { issuer: "https://as", audience: &["https://h/mcp"], skew: 60, now: NOW })
    }

    #[test]
    fn a_token_is_from_there_for_us_and_for_now() {
        let table = [
            (json!({}), ""),
            (json!({ "iss": "https://as/" }), "not issued by"),
            (json!({ "iss": "https://AS" }), "not issued by"),
            (json!({ "iss": ["https://as"] }), "not issued by"),
            (json!({ "iss": "-" }), "not issued by"),
            (json!({ "aud": ["x", "https://h/mcp"] }), ""),
            (json!({ "aud": "https://h/mcp/" }), "not issued for"),
            (json!({ "aud": "https://H/mcp" }), "not issued for"),
            (json!({ "aud": "https://h" }), "not issued for"),
            (json!({ "aud": "https://h/mcp https://x" }), "not issued for"),
            (json!({ "aud": [] }), "not issued for"),
            (json!({ "aud": [["https://h/mcp"]] }), "not issued for"),
            (json!({ "aud": { "https://h/mcp": 1 } }), "not issued for"),
            (json!({ "aud": null }), "not issued for"),
            (json!({ "aud": "-" }), "not issued for"),
            (json!({ "exp": "-" }), "no `exp`"),
            (json!({ "exp": null }), "`exp` is not a point"),
            (json!({ "exp": "1000010" }), "`exp` is not a point"),
            (json!({ "exp": -1 }), "`exp` is not a point"),
            (json!({ "exp": NOW - 59 }), ""),
            (json!({ "exp": NOW - 60 }), "expired"),
            (json!({ "exp": 0 }), "expired"),
            (json!({ "exp": 1e300 }), ""),
            (json!({ "exp": NOW as f64 + 0.5 }), ""),
            (json!({ "nbf": NOW + 60 }), ""),
            (json!({ "nbf": NOW + 61 }), "not valid yet"),
            (json!({ "nbf": "soon" }), "`nbf` is not a point"),
            (json!({ "iat": NOW + 61 }), "not valid yet"),
            (json!({ "iat": "-" }), ""),
            (json!({ "sub": "-" }), "neither `sub` nor"),
            (json!({ "sub": "", "client_id": "" }), "neither `sub` nor"),
            (json!({ "sub": 7 }), "neither `sub` nor"),
            (json!({ "cnf": { "x5t#S256": "abc" } }), "bound to something other"),
            (json!({ "cnf": "jkt" }), "bound to something other"),
            (json!({ "cnf": { "jkt": "abc" } }), ""),
        ];
        for (others, expected) in table {
            match checked(&others) {
                Ok(_) => assert_eq!(expected, "", "{others}"),
                Err(error) => {
                    let message = error.to_string();
                    assert!(!expected.is_empty() && message.contains(expected), "{others}: {message}");
                }
            }
        }
    }

    #[test]
    fn whose_it_is_and_what_was_granted() {
        let scopes = |others: Value| checked(&others).unwrap().scopes().collect::<Vec<_>>().join(" ");
        assert_eq!(scopes(json!({ "scope": "a  b a" })), "a b");
        assert_eq!(scopes(json!({ "scope": ["a", "b", 7] })), "a b");
        assert_eq!(scopes(json!({ "scp": "a", "scope": 7 })), "a");
        assert_eq!(scopes(json!({ "scp": ["a"], "scope": "b" })), "b a");
        assert_eq!(scopes(json!({})), "");
        let machine = checked(&json!({ "sub": "-", "client_id": "bot" })).unwrap();
        assert_eq!((machine.subject(), machine.client_id()), ("bot", Some("bot")));
        let through = checked(&json!({ "azp": "app" })).unwrap();
        assert_eq!((through.subject(), through.client_id()), ("ann", Some("app")));
        // The specification's name for a client comes before those that others have for it.
        for (others, client) in [
            (json!({ "cid": "app" }), "app"),
            (json!({ "azp": "app", "cid": "other" }), "app"),
            (json!({ "client_id": "app", "azp": "other", "cid": "other" }), "app"),
            (json!({ "client_id": "", "azp": "app" }), "app"),
        ] {
            assert_eq!(checked(&others).unwrap().client_id(), Some(client), "{others}");
        }
        assert_eq!(checked(&json!({ "exp": NOW + 10 })).unwrap().expires_at(), Some(NOW + 10));
        assert_eq!(checked(&json!({ "cnf": { "jkt": "abc" } })).unwrap().thumbprint(), Some("abc"));
    }
}
