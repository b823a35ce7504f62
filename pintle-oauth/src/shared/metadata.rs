use pintle::{Error, Result};
use serde::Deserialize;

use super::{
    address,
    web::{Guarded, Lookup},
};

/// The metadata of an authorization server: RFC 8414, or OpenID Connect Discovery.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    #[cfg(feature = "client")]
    pub(crate) authorization_endpoint: Option<String>,
    #[cfg(feature = "client")]
    pub(crate) token_endpoint: Option<String>,
    #[cfg(feature = "client")]
    pub(crate) registration_endpoint: Option<String>,
    #[cfg(feature = "client")]
    pub(crate) device_authorization_endpoint: Option<String>,
    #[cfg(feature = "client")]
    pub(crate) revocation_endpoint: Option<String>,
    #[cfg(feature = "client")]
    pub(crate) scopes_supported: Option<Vec<String>>,
    #[cfg(feature = "client")]
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    #[cfg(feature = "server")]
    pub(crate) jwks_uri: Option<String>,
    #[cfg(feature = "server")]
    pub(crate) introspection_endpoint: Option<String>,
    #[cfg(feature = "server")]
    pub(crate) introspection_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[cfg(feature = "client")]
    pub(crate) dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[cfg(feature = "client")]
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    #[cfg(feature = "client")]
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl ServerMetadata {
    /// Fetches the metadata of an issuer. A document of another issuer is ignored ([Authorization Server Metadata Discovery]).
    pub(crate) async fn fetch(web: Guarded<'_>, issuer: &str) -> Result<Self> {
        let unread =
            || Error::Decode(format!("`{issuer}` in the server's `authorization_servers` is not an issuer"));
        let (mut other, mut failed) = (None, None);
        for place in address::metadata_urls(issuer).ok_or_else(unread)? {
            match web.look::<Self>(&place).await? {
                Lookup::Found(metadata) if metadata.issuer == issuer => return Ok(metadata),
                Lookup::Found(metadata) => other = Some(metadata.issuer),
                Lookup::Failed(error) => drop(failed.get_or_insert(error)),
                Lookup::NotFound => {}
            }
        }
        // Another address may have the right document: which one is unknown while one of them fails.
        if let Some(failed) = failed {
            return Err(failed);
        }
        Err(match other {
            Some(other) => Error::Refused(format!(
                "the metadata of the authorization server `{issuer}` is that of `{}` and was ignored",
                address::printable(&other)
            )),
            None => Error::Decode(format!(
                "the authorization server `{issuer}` has no metadata at its well-known addresses"
            )),
        })
    }
}

#[cfg(feature = "client")]
impl ServerMetadata {
    /// Returns the default endpoints of a server of the 2025-03-26 revision.
    pub(crate) fn assumed(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    /// Returns the endpoints that a client uses, with their names.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("authorization_endpoint", &self.authorization_endpoint),
            ("token_endpoint", &self.token_endpoint),
            ("registration_endpoint", &self.registration_endpoint),
            ("device_authorization_endpoint", &self.device_authorization_endpoint),
        ];
        all.into_iter().filter_map(|(name, url)| Some((name, url.as_deref()?)))
    }

    pub(crate) fn token_endpoint(&self) -> Result<&str> {
        self.token_endpoint.as_deref().ok_or_else(|| self.lacks("token_endpoint"))
    }

    pub(crate) fn authorization_endpoint(&self) -> Result<&str> {
        self.authorization_endpoint.as_deref().ok_or_else(|| self.lacks("authorization_endpoint"))
    }

    pub(crate) fn has_scope(&self, scope: &str) -> bool {
        self.scopes_supported.iter().flatten().any(|own| own == scope)
    }

    pub(crate) fn signs_dpop(&self) -> bool {
        self.dpop_signing_alg_values_supported.iter().flatten().any(|algorithm| algorithm == "ES256")
    }

    /// Checks that the server supports PKCE, which is required ([Authorization Security, Authorization Code Protection]).
    pub(crate) fn check_pkce(&self) -> Result<()> {
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

#[cfg(test)]
#[cfg(feature = "client")]
mod tests {
    use super::{super::identity::Method, *};

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

    #[test]
    fn a_server_without_metadata_is_assumed_to_have_the_default_endpoints() {
        let assumed = ServerMetadata::assumed("https://old.test");
        assumed.check_pkce().unwrap();
        assert_eq!(Method::to_register(&assumed), Method::None);
        assert_eq!(
            assumed.endpoints().collect::<Vec<_>>(),
            [
                ("authorization_endpoint", "https://old.test/authorize"),
                ("token_endpoint", "https://old.test/token"),
                ("registration_endpoint", "https://old.test/register"),
            ]
        );
    }

    #[test]
    fn tokens_are_bound_where_our_signatures_are_understood() {
        for (text, signs) in [
            (r#"{"issuer":"https://as"}"#, false),
            (r#"{"issuer":"https://as","dpop_signing_alg_values_supported":["RS256"]}"#, false),
            (r#"{"issuer":"https://as","dpop_signing_alg_values_supported":["RS256","ES256"]}"#, true),
        ] {
            let metadata: ServerMetadata = serde_json::from_str(text).unwrap();
            assert_eq!(metadata.signs_dpop(), signs, "{text}");
        }
    }
}
