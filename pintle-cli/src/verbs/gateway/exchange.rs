use pintle_oauth::client::{Registered, TokenExchange};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

use super::secret::{SecretValue, fault_as_client_secret};
use crate::failure::Failure;

/// The exchange of the tokens of clients for tokens of a target or an API (RFC 8693).
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeEntry {
    /// The URL of the token endpoint.
    token_url: String,
    /// The id of the gateway as a client of the authorization server.
    client_id: String,
    /// The secret of that client, from the environment or a file.
    client_secret: Option<SecretValue>,
    /// The name of the target or API at the authorization server, in place of its URL.
    audience: Option<String>,
    /// The scopes of the new tokens.
    #[serde(default)]
    scopes: Vec<String>,
}

impl ExchangeEntry {
    /// Returns what is wrong with the entry.
    pub(super) fn fault(&self) -> Option<String> {
        self.client_secret.as_ref().and_then(fault_as_client_secret)
    }

    /// Returns the secret of the gateway as a client.
    pub(super) fn secret(&self) -> Option<&SecretValue> {
        self.client_secret.as_ref()
    }

    /// Returns the exchange for what is at a URL, as a client of the issuer of the tokens of clients.
    pub(super) fn exchange(&self, issuer: Option<&str>, url: &str) -> Result<TokenExchange, Failure> {
        let no_issuer = || Failure::internal(&"there is no authorization server");
        let issuer = issuer.ok_or_else(no_issuer)?;
        let client = Registered::new(issuer, &self.client_id);
        let client = match &self.client_secret {
            Some(secret) => client.secret(secret.read()?),
            None => client,
        };
        let exchange = TokenExchange::new(&self.token_url, client).scopes(self.scopes.iter().cloned());
        Ok(match &self.audience {
            Some(audience) => exchange.audience(audience),
            None => exchange.resource(url),
        })
    }
}
