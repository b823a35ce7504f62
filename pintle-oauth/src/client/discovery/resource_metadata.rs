use pintle::{Error, Result};
use serde::Deserialize;

use super::well_known;
use crate::shared::address;

/// The protected resource metadata of a server: RFC 9728.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ResourceMetadata {
    /// Stored as written, because it is sent back byte for byte. A document without it is about no server.
    #[serde(default)]
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
}

/// Returns the resource metadata, if it is about the server at this address.
pub(crate) fn about_server(metadata: ResourceMetadata, server: &http::Uri) -> Result<ResourceMetadata> {
    if !well_known::is_about(&metadata.resource, server) {
        return Err(Error::Refused(format!(
            "the server's resource metadata is about `{}`, not about `{}{}`: tokens for one are not asked for on \
             behalf of the other",
            address::printable(&metadata.resource),
            address::origin(server),
            server.path()
        )));
    }
    if metadata.authorization_servers.is_empty() {
        return Err(Error::Decode(
            "the server's resource metadata has no authorization server in `authorization_servers`".into(),
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
        assert!(
            resource(r#"{"resource":"https://h/mcp"}"#)
                .unwrap_err()
                .to_string()
                .contains("has no authorization server")
        );
    }
}
