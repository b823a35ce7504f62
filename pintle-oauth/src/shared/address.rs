//! Addresses as text, so that nothing is normalised: well-known ones, and origins.

use http::Uri;

/// Returns the addresses of the metadata of an authorization server. `None`: the issuer is not an address.
///
/// [Authorization, Authorization Server Metadata Discovery]: RFC 8414 first, then OpenID Connect with the path inserted,
/// then appended.
pub(crate) fn metadata_urls(issuer: &str) -> Option<Vec<String>> {
    let uri: Uri = issuer.parse().ok().filter(|_| !issuer.contains(['?', '#']))?;
    uri.scheme()?;
    let origin = origin(&uri);
    let path = uri.path().trim_end_matches('/');
    if path.is_empty() {
        return Some(vec![
            format!("{origin}/.well-known/oauth-authorization-server"),
            format!("{origin}/.well-known/openid-configuration"),
        ]);
    }
    Some(vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ])
}

/// Returns scheme, host and port as they were written.
pub(crate) fn origin(uri: &Uri) -> String {
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    format!("{}://{authority}", uri.scheme_str().unwrap_or_default())
}

/// Formats an address of another party for an error, on one line of limited length.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_looked_up_in_the_order_of_the_specification() {
        let of = |issuer: &str| metadata_urls(issuer).unwrap();
        let root = [
            "https://as/.well-known/oauth-authorization-server",
            "https://as/.well-known/openid-configuration",
        ];
        assert_eq!(of("https://as"), root);
        assert_eq!(of("https://as/"), root);
        assert_eq!(
            of("https://as/t1"),
            [
                "https://as/.well-known/oauth-authorization-server/t1",
                "https://as/.well-known/openid-configuration/t1",
                "https://as/t1/.well-known/openid-configuration",
            ]
        );
        for issuer in ["", "as", "/as", "https://as/?q", "https://as/#f", "https://a s/"] {
            assert_eq!(metadata_urls(issuer), None, "{issuer}");
        }
    }
}
