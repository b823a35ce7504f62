use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::shared::{
    identity::{Identity, Method},
    metadata::ServerMetadata,
    registered::Proof,
    scope::Scopes,
    secret::Secret,
};

/// The credentials of a client at one authorization server: its registration, and its tokens by resource.
///
/// A [`Store`](super::Store) keeps them as they are. They are never sent to another authorization server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Credentials {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registration: Option<Registration>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tokens: BTreeMap<String, Tokens>,
    /// When a file has saved them, in seconds since 1970. 0 if that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) saved_at: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The response of dynamic registration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Registration {
    pub(crate) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<Secret>,
    /// In seconds since 1970. 0 means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret_expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_endpoint_auth_method: Option<String>,
    /// The redirect address of this registration, which cannot be used with another.
    #[serde(default)]
    pub(crate) redirect_uri: String,
    /// Whether a login with it was not completed. Servers that no longer know a client show that to the user only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_doubt: bool,
}

impl Registration {
    /// Returns the identity of the registered client at this server.
    pub(crate) fn identity(&self, server: &ServerMetadata) -> Identity {
        let named = self.token_endpoint_auth_method.as_deref().and_then(Method::named);
        let (proof, method) = match &self.client_secret {
            None => (Proof::None, Method::None),
            Some(secret) => {
                let secret = Proof::Secret(secret.clone());
                (secret, named.unwrap_or_else(|| Method::with_secret(server)))
            }
        };
        Identity { client_id: self.client_id.clone(), proof, method }
    }

    /// Whether the registration can be used with this redirect address now.
    pub(crate) fn serves(&self, redirect_uri: &str, now: u64) -> bool {
        let expired = self.client_secret_expires_at.is_some_and(|at| at != 0 && at <= now);
        self.redirect_uri == redirect_uri && !expired && !self.in_doubt
    }
}

impl Credentials {
    /// Forgets a registration that the authorization server no longer knows, so that the next login registers again. With
    /// the old one the user would be shown an error and not be redirected.
    pub(crate) fn forget(&mut self, client_id: &str) {
        if self.registration.take_if(|registration| registration.client_id == client_id).is_some() {
            self.tokens.retain(|_, tokens| tokens.client_id != client_id);
        }
    }

    /// Marks a registration whose login was not completed. Its tokens may still be valid.
    pub(crate) fn doubt(&mut self, client_id: &str) {
        if let Some(registration) = &mut self.registration {
            registration.in_doubt |= registration.client_id == client_id;
        }
    }
}

/// An access token, with what is needed to use and to refresh it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh: Option<Secret>,
    /// When it should be replaced, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stale_at: Option<u64>,
    /// All scopes that were requested, granted or not.
    #[serde(default, skip_serializing_if = "Scopes::is_empty")]
    pub(crate) requested: Scopes,
    /// The client that they were issued to.
    #[serde(default)]
    pub(crate) client_id: String,
    /// The key that they are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dpop_key: Option<Secret>,
}

impl Tokens {
    pub(crate) fn is_stale(&self, now: u64) -> bool {
        self.stale_at.is_some_and(|at| at <= now)
    }
}

/// Returns when a token with this lifetime should be replaced: 30 seconds before it expires, for clock skew and slow
/// requests, but not before three quarters of its lifetime.
pub(crate) fn stale_at(now: u64, expires_in: u64) -> u64 {
    now.saturating_add(expires_in - (expires_in / 4).min(30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_client_uses_the_method_it_was_registered_with() {
        let method = |text: &str| {
            let registration: Registration = serde_json::from_str(text).unwrap();
            registration.identity(&ServerMetadata::default()).method
        };
        assert_eq!(method(r#"{"client_id":"c"}"#), Method::None);
        assert_eq!(method(r#"{"client_id":"c","client_secret":"s"}"#), Method::Basic);
        let post =
            r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#;
        assert_eq!(method(post), Method::Post);
        let none = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#;
        assert_eq!(method(none), Method::None);
    }

    #[test]
    fn a_token_is_replaced_before_it_expires() {
        for (lifetime, stale) in [(3600, 3570), (120, 90), (60, 45), (4, 3), (0, 0), (u64::MAX, u64::MAX)] {
            assert_eq!(stale_at(1000, lifetime), 1000_u64.saturating_add(stale), "{lifetime}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let text = r#"{"registration":{"client_id":"c","client_secret":"s3cret"},
            "tokens":{"https://h":{"access":"t0ken","refresh":"refr3sh","dpop_key":"k3y"}}}"#;
        let credentials: Credentials = serde_json::from_str(text).unwrap();
        let shown = format!("{credentials:?}");
        for secret in ["s3cret", "t0ken", "refr3sh", "k3y"] {
            assert!(!shown.contains(secret), "{shown}");
            assert!(serde_json::to_string(&credentials).unwrap().contains(secret));
        }
    }

    #[test]
    fn a_client_is_forgotten_with_what_it_was_given() {
        let text = r#"{"registration":{"client_id":"c"},
            "tokens":{"https://a":{"access":"1","client_id":"c"},"https://b":{"access":"2","client_id":"bot"}}}"#;
        let mut credentials: Credentials = serde_json::from_str(text).unwrap();
        for other in ["bot", "d"] {
            credentials.doubt(other);
            credentials.forget(other);
        }
        assert!(credentials.registration.as_ref().unwrap().serves("", 10));
        assert_eq!(credentials.tokens.len(), 2);
        credentials.doubt("c");
        assert!(!credentials.registration.as_ref().unwrap().serves("", 10));
        credentials.forget("c");
        assert!(credentials.registration.is_none());
        assert_eq!(credentials.tokens.keys().collect::<Vec<_>>(), ["https://b"]);
    }

    #[test]
    fn a_registration_serves_the_address_it_was_made_for() {
        let mut registration: Registration =
            serde_json::from_str(r#"{"client_id":"c","redirect_uri":"http://127.0.0.1:1/cb"}"#).unwrap();
        assert!(registration.serves("http://127.0.0.1:1/cb", 10));
        assert!(!registration.serves("http://127.0.0.1:2/cb", 10));
        for (expires_at, serves) in [(0, true), (9, false), (11, true)] {
            registration.client_secret_expires_at = Some(expires_at);
            assert_eq!(registration.serves("http://127.0.0.1:1/cb", 10), serves);
        }
    }
}
