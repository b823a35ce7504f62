use std::time::{Duration, SystemTime};

use super::credentials::{Credentials, Tokens};

/// A login whose tokens a [`FileStore`](super::file::FileStore) stores. It contains no secrets.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredLogin {
    /// The issuer of the tokens.
    pub issuer: String,
    /// The server that they are for: its resource identifier, or its URL.
    pub resource: String,
    /// The client that they were issued to.
    pub client_id: String,
    /// The scopes that were requested.
    pub scopes: Vec<String>,
    /// When the access token is to be replaced, if it expires.
    pub stale_at: Option<SystemTime>,
    /// Whether it can be replaced without the user.
    pub refreshable: bool,
}

impl StoredLogin {
    /// Returns the logins at one authorization server.
    pub(super) fn all_of(issuer: &str, credentials: &Credentials) -> Vec<Self> {
        let login = |(resource, tokens): (&String, &Tokens)| Self {
            issuer: issuer.to_owned(),
            resource: resource.clone(),
            client_id: tokens.client_id.clone(),
            scopes: tokens.requested.iter().map(str::to_owned).collect(),
            // A time that does not exist is never.
            stale_at: tokens
                .stale_at
                .and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at))),
            refreshable: tokens.refresh.is_some(),
        };
        credentials.tokens.iter().map(login).collect()
    }
}
