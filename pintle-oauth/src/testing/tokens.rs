use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The approval of a request by a user.
#[derive(Clone, Debug)]
pub(super) struct Approval {
    pub(super) client: String,
    pub(super) subject: String,
    pub(super) scopes: String,
    pub(super) resource: Option<String>,
    /// Identifies all tokens of one login, which are revoked together.
    pub(super) family: u64,
}

/// An authorization code.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) grant: Approval,
    pub(super) challenge: String,
    pub(super) redirect_uri: String,
    pub(super) expires: u64,
}

/// An entry that may be used once.
#[derive(Debug)]
struct Once<T> {
    family: u64,
    /// `None` after it was used.
    left: Option<T>,
}

/// The issued codes and tokens.
#[derive(Debug, Default)]
pub(super) struct IssuedTokens {
    codes: HashMap<String, Once<Code>>,
    refresh: HashMap<String, Once<Approval>>,
    access: HashMap<String, Access>,
    devices: HashMap<String, Approval>,
    families: u64,
    revoked: HashSet<u64>,
}

#[derive(Debug)]
struct Access {
    family: u64,
    claims: Value,
}

/// The error for a code or token that is refused: it was never issued, or used before.
#[derive(Debug, PartialEq)]
pub(super) enum Unknown {
    Never,
    Again,
}

impl IssuedTokens {
    pub(super) fn family(&mut self) -> u64 {
        self.families += 1;
        self.families
    }

    pub(super) fn len(&self) -> usize {
        self.codes.len() + self.refresh.len() + self.access.len() + self.devices.len()
    }

    pub(super) fn keep_code(&mut self, name: String, code: Code) {
        let family = code.grant.family;
        self.codes.insert(name, Once { family, left: Some(code) });
    }

    pub(super) fn keep_refresh(&mut self, name: String, grant: Approval) {
        let family = grant.family;
        self.refresh.insert(name, Once { family, left: Some(grant) });
    }

    pub(super) fn keep_access(&mut self, token: String, family: u64, claims: Value) {
        self.access.insert(token, Access { family, claims });
    }

    pub(super) fn keep_device(&mut self, name: String, grant: Approval) {
        self.devices.insert(name, grant);
    }

    pub(super) fn take_device(&mut self, name: &str) -> Option<Approval> {
        self.devices.remove(name)
    }

    /// Redeems a code. One that is used twice is refused, and its tokens are revoked: RFC 6749 §4.1.2.
    pub(super) fn redeem(&mut self, name: &str) -> Result<Code, Unknown> {
        let code = self.codes.get_mut(name).ok_or(Unknown::Never)?;
        code.left.take().ok_or_else(|| {
            self.revoked.insert(code.family);
            Unknown::Again
        })
    }

    /// Redeems a refresh token. One that is used twice revokes its whole family: RFC 9700 §4.14.2.
    pub(super) fn rotate(&mut self, name: &str) -> Result<Approval, Unknown> {
        let refresh = self.refresh.get_mut(name).ok_or(Unknown::Never)?;
        if self.revoked.contains(&refresh.family) {
            return Err(Unknown::Never);
        }
        refresh.left.take().ok_or_else(|| {
            self.revoked.insert(refresh.family);
            Unknown::Again
        })
    }

    /// Returns the approval of a valid refresh token.
    pub(super) fn good(&self, refresh: &str) -> Option<&Approval> {
        self.refresh.get(refresh).filter(|once| !self.revoked.contains(&once.family))?.left.as_ref()
    }

    /// Returns the claims of an access token that is valid at this time.
    pub(super) fn claims(&self, token: &str, now: u64) -> Option<&Value> {
        let good = self.access.get(token).filter(|access| {
            let lasts = access.claims["exp"].as_u64().is_none_or(|until| now < until);
            lasts && !self.revoked.contains(&access.family)
        });
        good.map(|access| &access.claims)
    }

    /// Revokes an access token, or a refresh token with its family, for the client that it was issued to: RFC 7009.
    pub(super) fn revoke(&mut self, token: &str, client: &str) {
        if self.access.get(token).is_some_and(|access| access.claims["client_id"] == client) {
            self.access.remove(token);
        }
        if let Some(grant) = self.good(token).filter(|grant| grant.client == client) {
            self.revoked.insert(grant.family);
        }
    }

    pub(super) fn issued(&self) -> Vec<String> {
        self.access.keys().cloned().collect()
    }

    pub(super) fn revoke_access(&mut self) {
        self.access.clear();
    }

    pub(super) fn revoke_refresh(&mut self) {
        self.refresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grant(family: u64) -> Approval {
        Approval { client: "c".into(), subject: "s".into(), scopes: String::new(), resource: None, family }
    }

    #[test]
    fn a_code_that_comes_twice_takes_its_tokens_with_it() {
        let mut tokens = IssuedTokens::default();
        let family = tokens.family();
        let code =
            Code { grant: grant(family), challenge: String::new(), redirect_uri: String::new(), expires: 9 };
        tokens.keep_code("code".into(), code);
        tokens.keep_access("access".into(), family, json!({ "exp": 100 }));
        tokens.keep_refresh("refresh".into(), grant(family));
        assert!(tokens.redeem("code").is_ok());
        assert!(tokens.claims("access", 99).is_some());
        assert!(tokens.claims("access", 100).is_none());
        assert_eq!(tokens.redeem("code").unwrap_err(), Unknown::Again);
        assert!(tokens.claims("access", 99).is_none());
        assert_eq!(tokens.rotate("refresh").unwrap_err(), Unknown::Never);
        assert_eq!(tokens.redeem("other").unwrap_err(), Unknown::Never);
    }

    #[test]
    fn a_refresh_token_that_comes_twice_takes_its_successor_with_it() {
        let mut tokens = IssuedTokens::default();
        tokens.keep_refresh("first".into(), grant(1));
        tokens.keep_refresh("other".into(), grant(2));
        assert!(tokens.rotate("first").is_ok());
        tokens.keep_refresh("second".into(), grant(1));
        assert_eq!(tokens.rotate("first").unwrap_err(), Unknown::Again);
        assert_eq!(tokens.rotate("second").unwrap_err(), Unknown::Never);
        assert!(tokens.rotate("other").is_ok());
    }
}
