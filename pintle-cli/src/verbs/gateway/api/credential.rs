use pintle_openapi::{OAuthClient, OpenApi};
use pintle_serve::SecretError;
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    targets::secrets,
    verbs::gateway::secret::{NOT_HERE, SecretValue, fault_as_client_secret, written},
};

/// The credential of a security scheme.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub(super) enum CredentialEntry {
    /// An API key, a token, or `user:password`.
    Secret(SecretValue),
    /// A client of the authorization server, which gets tokens.
    Client(ApiClientEntry),
}

/// A client of the authorization server of an API.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ApiClientEntry {
    /// The id of the client.
    client_id: String,
    /// The secret of the client, from the environment or a file.
    client_secret: SecretValue,
    /// The scopes of the tokens; what the authorization server chooses by default.
    #[serde(default)]
    scopes: Vec<String>,
    /// The URL of the token endpoint, in place of the one of the document.
    token_url: Option<String>,
}

impl CredentialEntry {
    /// Returns what is wrong with the credential of a scheme.
    pub(super) fn fault(&self, scheme: &String) -> Option<String> {
        match self {
            Self::Secret(value) => written([(scheme, value)]),
            Self::Client(client) => fault_as_client_secret(&client.client_secret).or_else(|| {
                let part = client.token_url.as_deref().and_then(secrets::in_url)?;
                Some(format!("{part} of `token_url` {NOT_HERE}: leave it out"))
            }),
        }
    }

    /// Returns the secret.
    pub(super) fn secret(&self) -> &SecretValue {
        match self {
            Self::Secret(value) => value,
            Self::Client(client) => &client.client_secret,
        }
    }

    /// Adds the credential to an API, with the secrets that it needs.
    pub(super) fn add_to(&self, api: OpenApi, scheme: &str) -> Result<OpenApi, SecretError> {
        let client = match self {
            Self::Secret(value) => return Ok(api.secret(scheme, value.read()?)),
            Self::Client(client) => client,
        };
        let oauth = OAuthClient::new(&client.client_id, client.client_secret.read()?);
        let oauth = client.token_url.iter().fold(oauth, OAuthClient::token_url);
        Ok(api.oauth_client(scheme, oauth.scopes(client.scopes.iter().cloned())))
    }
}
