use std::{fmt, ops::Deref, sync::Arc};

use http::{HeaderValue, Uri, uri::PathAndQuery};

use crate::{Error, Result};

/// The address of a server. Prints without the query, which may contain a secret.
#[derive(Clone)]
pub(in crate::client::http) struct Address(Arc<AddressParts>);

pub(in crate::client::http) struct AddressParts {
    pub(in crate::client::http) uri: Uri,
    /// The path and query, as in requests to the server itself.
    pub(in crate::client::http) path: Uri,
    /// The `Host` header.
    pub(in crate::client::http) host: HeaderValue,
    shown: Box<str>,
}

impl Address {
    pub(in crate::client::http) fn parse(url: &str) -> Result<Self> {
        let uri: Uri = url.parse().map_err(|error| {
            Error::misuse(format!(
                "the URL cannot be read: {error}: give one such as `https://example.com/mcp`"
            ))
        })?;
        let scheme = uri.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "https") || uri.host().is_none_or(str::is_empty) {
            return Err(Error::misuse(
                "the URL has to name a scheme and a host, such as `https://example.com/mcp`",
            ));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(Error::misuse(
                "the URL has a user or a password in it: take them out and send them with `header` or `auth`",
            ));
        }
        Ok(Self::of(uri))
    }

    /// Resolves an address that the server named.
    pub(in crate::client::http) fn of(uri: Uri) -> Self {
        let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let shown = format!("{}://{host}{}", uri.scheme_str().unwrap_or_default(), uri.path());
        let path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        let host = match (uri.scheme_str(), uri.port_u16()) {
            (Some("http"), Some(80)) | (Some("https"), Some(443)) => uri.host().unwrap_or_default(),
            _ => host,
        };
        // What is no header was no host of a URI.
        let host = HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static(""));
        Self(Arc::new(AddressParts { path: path.into(), host, shown: shown.into(), uri }))
    }

    /// Whether both are identical.
    pub(in crate::client::http) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both have the same origin.
    pub(in crate::client::http) fn is_with(&self, other: &Self) -> bool {
        self.is(other)
            || (self.uri.scheme() == other.uri.scheme() && self.uri.authority() == other.uri.authority())
    }
}

impl Deref for Address {
    type Target = AddressParts;

    fn deref(&self) -> &AddressParts {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let address = Address::parse("https://example.com:8443/mcp?key=s3cret").unwrap();
        assert_eq!(address.to_string(), "https://example.com:8443/mcp");
        assert_eq!(format!("{address:?}"), "https://example.com:8443/mcp");
        let named = Address::of("http://u:p@example.com/m".parse().unwrap());
        assert_eq!(named.to_string(), "http://example.com/m");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (url, text) in [
            ("/mcp", "has to name a scheme and a host"),
            ("ftp://example.com/", "has to name a scheme and a host"),
            ("example.com", "has to name a scheme and a host"),
            ("http://a b/", "cannot be read"),
            ("http://me:secret@example.com/", "take them out"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(text), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
