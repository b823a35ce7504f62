use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// What somebody agreed to, once.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) client: String,
    pub(super) subject: String,
    pub(super) scopes: String,
    pub(super) resource: Option<String>,
    /// All that came of one login: what is found to be stolen takes the rest with it.
    pub(super) family: u64,
}

/// A code that was not redeemed yet.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) grant: Grant,
    pub(super) challenge: String,
    pub(super) redirect_uri: String,
    pub(super) expires: u64,
}

/// What may be used once.
#[derive(Debug)]
struct Once<T> {
    family: u64,
    /// Nothing after it was used.
    left: Option<T>,
}

/// Everything that was given out.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    codes: HashMap<String, Once<Code>>,
    refresh: HashMap<String, Once<Grant>>,
    access: HashMap<String, Access>,
    devices: HashMap<String, Grant>,
    families: u64,
    revoked: HashSet<u64>,
}

#[derive(Debug)]
struct Access {
    family: u64,
    claims: Value,
}

/// Why something is not taken: it was never given out, or it was used before.
#[derive(Debug, PartialEq)]
pub(super) enum Unknown {
    Never,
    Again,
}

impl Tokens {
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

    pub(super) fn keep_refresh(&mut self, name: String, grant: Grant) {
        let family = grant.family;
        self.refresh.insert(name, Once { family, left: Some(grant) });
    }

    pub(super) fn keep_access(&mut self, token: String, family: u64, claims: Value) {
        self.access.insert(token, Access { family, claims });
    }

    pub(super) fn keep_device(&mut self, name: String, grant: Grant) {
        self.devices.insert(name, grant);
    }

    pub(super) fn take_device(&mut self, name: &str) -> Option<Grant> {
        self.devices.remove(name)
    }

    /// RFC 6749 §4.1.2: a code that comes twice is refused, and what was given for it is revoked.
    pub(super) fn redeem(&mut self, name: &str) -> Result<Code, Unknown> {
        let code = self.codes.get_mut(name).ok_or(Unknown::Never)?;
        code.left.take().ok_or_else(|| {
            self.revoked.insert(code.family);
            Unknown::Again
        })
    }

    /// RFC 9700 §4.14.2: a refresh token is good once, and one that comes twice takes its whole family with it.
    pub(super) fn rotate(&mut self, name: &str) -> Result<Grant, Unknown> {
        let refresh = self.refresh.get_mut(name).ok_or(Unknown::Never)?;
        if self.revoked.contains(&refresh.family) {
            return Err(Unknown::Never);
        }
        refresh.left.take().ok_or_else(|| {
            self.revoked.insert(refresh.family);
            Unknown::Again
        })
    }

    /// What a refresh token is for, as long as it is good.
    pub(super) fn good(&self, refresh: &str) -> Option<&Grant> {
        self.refresh.get(refresh).filter(|once| !self.revoked.contains(&once.family))?.left.as_ref()
    }

    /// What an access token says, if it is good at this time.
    pub(super) fn claims(&self, token: &str, now: u64) -> Option<&Value> {
        let good = self.access.get(token).filter(|access| {
            let lasts = access.claims["exp"].as_u64().is_none_or(|until| now < until);
            lasts && !self.revoked.contains(&access.family)
        });
        good.map(|access| &access.claims)
    }

    /// RFC 7009: an access token alone, a refresh token with all that came of it. Only who was given them may.
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

    fn grant(family: u64) -> Grant {
        Grant { client: "c".into(), subject: "s".into(), scopes: String::new(), resource: None, family }
    }

    #[test]
    fn a_code_that_comes_twice_takes_its_tokens_with_it() {
        let mut tokens = Tokens::default();
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
        let mut tokens = Tokens::default();
        tokens.keep_refresh("first".into(), grant(1));
        tokens.keep_refresh("other".into(), grant(2));
        assert!(tokens.rotate("first").is_ok());
        tokens.keep_refresh("second".into(), grant(1));
        assert_eq!(tokens.rotate("first").unwrap_err(), Unknown::Again);
        assert_eq!(tokens.rotate("second").unwrap_err(), Unknown::Never);
        assert!(tokens.rotate("other").is_ok());
    }
}
