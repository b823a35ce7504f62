/// The path of a server whose host alone was typed.
const PATH: &str = "/mcp";

/// Returns the URL of `host[:port][/path]`: `https`, or `http` on this machine.
pub(super) fn url_of_host(typed: &str) -> String {
    let end = typed.find(['/', '?', '#']).unwrap_or(typed.len());
    let (authority, rest) = typed.split_at(end);
    let scheme = if is_loopback(host(authority)) { "http" } else { "https" };
    let rest = if rest.is_empty() { PATH } else { rest };
    format!("{scheme}://{authority}{rest}")
}

/// Returns whether a word looks like a host: it has a path, a port or a dot, or is `localhost`.
pub(super) fn is_host(typed: &str) -> bool {
    let authority = typed.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host(authority);
    let port = authority.strip_prefix(host).and_then(|port| port.strip_prefix(':'));
    let host_fits =
        !host.is_empty() && host.chars().all(|letter| letter.is_alphanumeric() || ".-[]:_".contains(letter));
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok());
    host_fits
        && port_fits
        && (typed.contains('/') || port.is_some() || host.contains('.') || is_loopback(host))
}

fn host(authority: &str) -> &str {
    match authority.starts_with('[') {
        true => authority.find(']').map_or(authority, |end| &authority[..=end]),
        false => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Returns a URL without its query and without user and password.
pub(super) fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_url_with_the_usual_scheme_and_path() {
        for (typed, url) in [
            ("example.com", "https://example.com/mcp"),
            ("example.com/v1/mcp?x=1", "https://example.com/v1/mcp?x=1"),
            ("example.com/", "https://example.com/"),
            ("localhost:8000", "http://localhost:8000/mcp"),
            ("api.localhost/x", "http://api.localhost/x"),
            ("127.0.0.1:3001/sse", "http://127.0.0.1:3001/sse"),
            ("[::1]:8000", "http://[::1]:8000/mcp"),
            ("10.0.0.7", "https://10.0.0.7/mcp"),
            // Not this machine, whatever it begins with.
            ("localhost.example.com", "https://localhost.example.com/mcp"),
            ("127.0.0.1.example.com", "https://127.0.0.1.example.com/mcp"),
        ] {
            assert!(is_host(typed), "{typed}");
            assert_eq!(url_of_host(typed), url);
        }
    }

    #[test]
    fn a_name_is_not_a_host() {
        for typed in
            ["git", "my-server", "a b", "", "./server", "/usr/bin/server", "x:y", "git:99999", "user@host/x"]
        {
            assert!(!is_host(typed) || typed.starts_with('.'), "{typed}");
        }
    }

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        assert_eq!(without_secrets("https://u:p@example.com/mcp?token=x#y"), "https://example.com/mcp");
    }
}
