use http::Uri;
use pintle_oauth::server::{Jwt, Principal, Protected};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::fleet::GatewayFleet;
use crate::listen::PathProtection;

/// The authorization server whose tokens clients need. Each path is a resource of its own: a token for one is not accepted at another.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AuthEntry {
    /// The issuer of the tokens.
    pub(super) issuer: String,
    /// The URL of the gateway without a path, as clients write it: `https://mcp.example.com`.
    url: String,
    /// The scopes that every request needs.
    #[serde(default)]
    scopes: Vec<String>,
    /// Where the keys of the issuer are, if its metadata does not say it.
    jwks_url: Option<String>,
    /// The claim that is the name of a principal in rules and logs: `sub` by default. `email` needs `email_verified` in the token.
    principal: Option<String>,
}

/// The check of tokens, for every path of a gateway.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    url: String,
    tokens: Jwt,
    scopes: Vec<String>,
    claim: Option<String>,
}

impl AuthEntry {
    /// Returns what is wrong with the entry.
    pub(super) fn fault(&self) -> Option<String> {
        if !is_gateway_url(&self.url) {
            return Some(not_a_gateway_url(&self.url));
        }
        self.protection()
            .and_then(|protection| protection.of_path("/mcp"))
            .err()
            .map(|error| error.to_string())
    }

    /// Returns the URL of the gateway.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the check of tokens for each path. A proof of possession is used once, by one of all processes.
    pub(super) fn of_paths(&self, fleet: Option<&GatewayFleet>) -> pintle::Result<Box<PathProtection>> {
        let (protection, nonces) = (self.protection()?, fleet.map(GatewayFleet::nonces));
        Ok(Box::new(move |path| {
            let protected = protection.of_path(path)?;
            Ok(match &nonces {
                Some(nonces) => protected.nonce_store(nonces.clone()),
                None => protected,
            })
        }))
    }

    /// Returns whether principals have the same names with another entry, so that sessions and logins stay theirs.
    pub(super) fn names_like(&self, other: &Self) -> bool {
        let names = |entry: &Self| (entry.issuer.clone(), entry.url.clone(), entry.principal.clone());
        names(self) == names(other)
    }

    /// Returns the check of tokens.
    fn protection(&self) -> pintle::Result<Protection> {
        let mut tokens = Jwt::new(&self.issuer)?;
        if let Some(url) = &self.jwks_url {
            tokens = tokens.keys_at(url);
        }
        Ok(Protection {
            url: self.url.trim_end_matches('/').to_owned(),
            tokens,
            scopes: self.scopes.clone(),
            claim: self.principal.clone().filter(|claim| claim != "sub"),
        })
    }
}

impl Protection {
    /// Returns the check of tokens for a path.
    pub(super) fn of_path(&self, path: &str) -> pintle::Result<Protected> {
        let claim = self.claim.clone();
        let resource = format!("{}{path}", self.url);
        let protected = Protected::new(resource, self.tokens.clone())?.scopes(self.scopes.iter().cloned());
        // Targets may exchange it. It is sent to none of them.
        Ok(protected.keep_token().principals(move |principal| name(principal, claim.as_deref())))
    }
}

/// Returns whether a text can be the URL of a gateway: it has no path, and nobody between can read what is sent to it.
pub(super) fn is_gateway_url(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let is_safe = match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => true,
        (Some("http"), Some(host)) => matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
        _ => false,
    };
    is_safe && uri.path().len() <= 1 && uri.query().is_none()
}

/// Returns the mistake of a text that is not the URL of a gateway.
pub(super) fn not_a_gateway_url(url: &str) -> String {
    format!(
        "`{url}` is not the URL of a gateway: write it with `https` and without a path, such as `https://mcp.example.com`"
    )
}

/// Returns the name of a principal; `None` if its token has none that can be told apart from `@local` and its kin.
fn name(principal: &Principal, claim: Option<&str>) -> Option<String> {
    let name = match claim {
        None => principal.subject(),
        // Users of some issuers set it themselves.
        Some("email") if principal.claim("email_verified") != Some(&Value::Bool(true)) => return None,
        Some(claim) => principal.claim(claim)?.as_str()?,
    };
    (!name.is_empty() && !name.starts_with('@')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_that_of_the_claim_and_never_one_of_a_kind() {
        let ann = Principal::new("https://login.example", "ann");
        assert_eq!(name(&ann, None).as_deref(), Some("ann"));
        assert_eq!(name(&ann, Some("email")), None, "it has no such claim");
        let with = |verified: Value| {
            let claims = json!({"email": "ann@example.com", "email_verified": verified, "roles": ["a"]});
            ann.clone().claims(serde_json::from_value(claims).unwrap())
        };
        for unverified in [json!(false), json!("true"), json!(1), Value::Null] {
            assert_eq!(name(&with(unverified), Some("email")), None);
        }
        let ann = with(json!(true));
        assert_eq!(name(&ann, Some("email")).as_deref(), Some("ann@example.com"));
        assert_eq!(name(&ann, Some("roles")), None);
        for odd in ["@local", "@anonymous", ""] {
            assert_eq!(name(&Principal::new("https://login.example", odd), None), None);
        }
    }

    #[test]
    fn each_path_has_a_resource_of_its_own() {
        let entry = |url: &str| AuthEntry {
            issuer: "https://login.example".into(),
            url: url.into(),
            scopes: Vec::new(),
            jwks_url: None,
            principal: None,
        };
        let protection = entry("https://mcp.example/").protection().unwrap();
        let paths = ["/mcp", "/mcp/git"].map(|path| protection.of_path(path).unwrap().metadata_path());
        let well_known = "/.well-known/oauth-protected-resource";
        assert_eq!(paths, [format!("{well_known}/mcp"), format!("{well_known}/mcp/git")]);
        assert_eq!(entry("https://mcp.example").fault(), None);
        assert!(entry("https://mcp.example/mcp").fault().unwrap().contains("without a path"));
        assert!(entry("http://mcp.example").fault().unwrap().contains("https"));
    }
}
