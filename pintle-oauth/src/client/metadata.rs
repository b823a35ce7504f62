use pintle::{Error, Result};
use serde::Deserialize;

use super::places;

/// What a server says about itself: RFC 9728.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    /// Kept as it was written: it is sent back byte for byte. A document without it is about nothing.
    #[serde(default)]
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// What an authorization server says about itself: RFC 8414, or OpenID Connect Discovery.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) device_authorization_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl ServerMetadata {
    /// The endpoints that servers of the 2025-03-26 revision have if they do not say otherwise.
    pub(super) fn assumed(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            token_endpoint_auth_methods_supported: Some(vec!["none".to_owned()]),
            ..Self::default()
        }
    }

    pub(super) fn token_endpoint(&self) -> Result<&str> {
        self.token_endpoint.as_deref().ok_or_else(|| self.lacks("token_endpoint"))
    }

    pub(super) fn authorization_endpoint(&self) -> Result<&str> {
        self.authorization_endpoint.as_deref().ok_or_else(|| self.lacks("authorization_endpoint"))
    }

    pub(super) fn has_scope(&self, scope: &str) -> bool {
        self.scopes_supported.iter().flatten().any(|own| own == scope)
    }

    pub(super) fn signs_dpop(&self) -> bool {
        self.dpop_signing_alg_values_supported.iter().flatten().any(|algorithm| algorithm == "ES256")
    }

    /// [Authorization Security, Authorization Code Protection]: a client refuses to go on without PKCE.
    pub(super) fn check_pkce(&self) -> Result<()> {
        if self.code_challenge_methods_supported.iter().flatten().any(|method| method == "S256") {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "the authorization server `{}` does not offer PKCE with `S256`: ask its operator to list it in \
             `code_challenge_methods_supported`",
            self.issuer
        )))
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Decode(format!("the metadata of the authorization server `{}` has no `{what}`", self.issuer))
    }
}

/// Resource metadata, if it is about the server at this address.
pub(super) fn about_server(metadata: ResourceMetadata, server: &http::Uri) -> Result<ResourceMetadata> {
    if !places::is_about(&metadata.resource, server) {
        return Err(Error::Refused(format!(
            "the server's resource metadata is about `{}`, not about `{}{}`: tokens for one are not asked for on \
             behalf of the other",
            metadata.resource,
            places::origin(server),
            server.path()
        )));
    }
    if metadata.authorization_servers.is_empty() {
        return Err(Error::Decode(
            "the server's resource metadata names no authorization server: it has to be in `authorization_servers`"
                .into(),
        ));
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(text: &str) -> Result<ResourceMetadata> {
        about_server(serde_json::from_str(text).unwrap(), &"https://h/mcp".parse().unwrap())
    }

    #[test]
    fn a_resource_is_kept_byte_for_byte() {
        let found = resource(r#"{"resource":"https://H","authorization_servers":["https://as"]}"#).unwrap();
        assert_eq!(found.resource, "https://H");
    }

    #[test]
    fn metadata_about_another_server_is_refused() {
        let error = resource(r#"{"resource":"https://evil/mcp","authorization_servers":["https://as"]}"#);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .starts_with("the server's resource metadata is about `https://evil/mcp`")
        );
        assert!(resource(r#"{"resource":"https://h/mcp"}"#).unwrap_err().to_string().contains("names no"));
    }

    #[test]
    fn a_server_without_pkce_is_refused() {
        for text in [
            r#"{"issuer":"https://as"}"#,
            r#"{"issuer":"https://as","code_challenge_methods_supported":["plain"]}"#,
        ] {
            let metadata: ServerMetadata = serde_json::from_str(text).unwrap();
            assert!(metadata.check_pkce().is_err(), "{text}");
        }
    }
}
