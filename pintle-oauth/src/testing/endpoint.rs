use std::fmt;

use http::Method;

/// An endpoint of an authorization server.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Endpoint {
    /// The metadata: RFC 8414.
    Metadata,
    /// The metadata of OpenID Connect, with the issuer's path inserted or in front.
    OpenidConfiguration,
    /// The keys for verifying tokens.
    Keys,
    /// Dynamic registration of clients: RFC 7591.
    Register,
    /// The login page.
    Authorize,
    /// The token endpoint.
    Token,
    /// Device authorization: RFC 8628.
    Device,
    /// Introspection of tokens: RFC 7662.
    Introspect,
    /// Revocation of tokens: RFC 7009.
    Revoke,
}

/// The endpoints whose address is the issuer's with a name appended.
const BELOW_ISSUER: [(Endpoint, &str); 8] = [
    (Endpoint::OpenidConfiguration, "/.well-known/openid-configuration"),
    (Endpoint::Keys, "/jwks"),
    (Endpoint::Register, "/register"),
    (Endpoint::Authorize, "/authorize"),
    (Endpoint::Token, "/token"),
    (Endpoint::Device, "/device"),
    (Endpoint::Introspect, "/introspect"),
    (Endpoint::Revoke, "/revoke"),
];

impl Endpoint {
    /// Returns the endpoint at a path of an issuer with this path.
    pub(super) fn at(path: &str, issuer: &str) -> Option<Self> {
        if path.strip_prefix("/.well-known/oauth-authorization-server") == Some(issuer) {
            return Some(Self::Metadata);
        }
        if path.strip_prefix("/.well-known/openid-configuration") == Some(issuer) {
            return Some(Self::OpenidConfiguration);
        }
        let below = path.strip_prefix(issuer)?;
        BELOW_ISSUER.iter().find(|(_, name)| *name == below).map(|(endpoint, _)| *endpoint)
    }

    /// Returns the method of requests to it.
    pub(super) fn method(self) -> Method {
        match self {
            Self::Metadata | Self::OpenidConfiguration | Self::Keys | Self::Authorize => Method::GET,
            _ => Method::POST,
        }
    }

    /// Returns the name that is appended to the issuer's address.
    pub(super) fn name(self) -> &'static str {
        let found = BELOW_ISSUER.iter().find(|(endpoint, _)| *endpoint == self);
        found.map_or("/.well-known/oauth-authorization-server", |(_, name)| name)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_at_every_address_that_clients_look_at() {
        let table = [
            ("", "/.well-known/oauth-authorization-server", Some(Endpoint::Metadata)),
            ("", "/.well-known/openid-configuration", Some(Endpoint::OpenidConfiguration)),
            ("/t", "/.well-known/oauth-authorization-server/t", Some(Endpoint::Metadata)),
            ("/t", "/.well-known/openid-configuration/t", Some(Endpoint::OpenidConfiguration)),
            ("/t", "/t/.well-known/openid-configuration", Some(Endpoint::OpenidConfiguration)),
            ("/t", "/.well-known/oauth-authorization-server", None),
            ("/t", "/t/token", Some(Endpoint::Token)),
            ("/t", "/token", None),
            ("", "/token/", None),
        ];
        for (issuer, path, expected) in table {
            assert_eq!(Endpoint::at(path, issuer), expected, "{issuer} {path}");
        }
    }
}
