//! The well-known addresses of resource metadata. They are built as text, so that nothing is normalised.

use http::Uri;

use pintle::proto::http::same_origin;

use crate::shared::address::origin;

/// Returns the addresses of a server's resource metadata: with its path, then at the root.
pub(crate) fn metadata_urls(server: &Uri) -> Vec<String> {
    let origin = origin(server);
    let path = server.path().trim_end_matches('/');
    let mut places = Vec::new();
    if !path.is_empty() {
        places.push(format!("{origin}/.well-known/oauth-protected-resource{path}"));
    }
    places.push(format!("{origin}/.well-known/oauth-protected-resource"));
    places
}

/// Whether resource metadata with this `resource` is about the server at this address: it has the same origin, and a path
/// that contains the server's.
pub(crate) fn is_about(resource: &str, server: &Uri) -> bool {
    let Ok(named) = resource.parse::<Uri>() else { return false };
    if resource.contains('#') || !same_origin(&named, server) {
        return false;
    }
    if named.query().is_some() && named.query() != server.query() {
        return false;
    }
    let path = named.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_metadata_is_looked_for_under_the_path_and_at_the_root() {
        let table: &[(&str, &[&str])] = &[
            (
                "https://h/mcp",
                &[
                    "https://h/.well-known/oauth-protected-resource/mcp",
                    "https://h/.well-known/oauth-protected-resource",
                ],
            ),
            ("https://h:8443/", &["https://h:8443/.well-known/oauth-protected-resource"]),
            (
                "http://h/a/b/?q=1",
                &[
                    "http://h/.well-known/oauth-protected-resource/a/b",
                    "http://h/.well-known/oauth-protected-resource",
                ],
            ),
        ];
        for (server, expected) in table {
            assert_eq!(metadata_urls(&server.parse().unwrap()), *expected, "{server}");
        }
    }

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let table = [
            ("https://h/mcp", "https://h/mcp", true),
            ("https://h", "https://h/mcp", true),
            ("https://h/", "https://h/mcp", true),
            ("https://H:443/mcp", "https://h/mcp", true),
            ("https://h/mcp/", "https://h/mcp", true),
            ("https://h/mcp", "https://h/mcp/messages", true),
            ("https://h/mc", "https://h/mcp", false),
            ("https://h/other", "https://h/mcp", false),
            ("http://h/mcp", "https://h/mcp", false),
            ("https://h:8443/mcp", "https://h/mcp", false),
            ("https://evil.example.com/mcp", "https://h/mcp", false),
            ("https://h.evil/mcp", "https://h/mcp", false),
            ("https://h/mcp#x", "https://h/mcp", false),
            ("https://h/mcp?a", "https://h/mcp", false),
            ("https://h/mcp?a", "https://h/mcp?a", true),
            ("/mcp", "https://h/mcp", false),
            ("", "https://h/mcp", false),
        ];
        for (resource, server, expected) in table {
            assert_eq!(is_about(resource, &server.parse().unwrap()), expected, "{resource} {server}");
        }
    }
}
