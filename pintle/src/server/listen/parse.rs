//! A `Listen` as a string.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
};

use super::{Listen, ListenAddress, PATH};
use crate::{Error, Result};

/// The port of HTTP unless another one is given.
const PORT: u16 = 8000;

impl FromStr for Listen {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let address = match text.split_once(':') {
            None if text == "stdio" => ListenAddress::Stdio,
            Some(("http", rest)) if rest.starts_with("//") => http_url(text, &rest[2..])?,
            Some(("https", _)) => {
                return Err(Error::misuse(format!(
                    "`{text}`: TLS needs certificates; listen at `http:{}` behind a proxy, or use `HttpServer::tls`",
                    &text[6..]
                )));
            }
            Some(("tcp", rest)) if rest.starts_with("//") => ListenAddress::Tcp(with_port(&rest[2..], None)?),
            Some(("unix", path)) => match path.strip_prefix("//").unwrap_or(path) {
                "" => return Err(Error::misuse("`unix:` needs a path: write `unix:/run/server.sock`")),
                path => ListenAddress::Unix(path.into()),
            },
            _ => return Err(no_scheme(text)),
        };
        address.check_features()?;
        Ok(Self::new(address))
    }
}

impl Listen {
    /// Parses the value of `--http`: a URL, an address, or a port of this machine.
    pub(super) fn parse_http(text: &str) -> Result<Self> {
        if text.contains("://") {
            return match text.parse()? {
                listen @ Self { address: ListenAddress::Http { .. }, .. } => Ok(listen),
                _ => Err(Error::misuse(format!(
                    "`{text}` is not an address of HTTP: write `127.0.0.1:{PORT}`"
                ))),
            };
        }
        let address = ListenAddress::Http { address: with_port(text, Some(PORT))?, path: PATH.into() };
        address.check_features()?;
        Ok(Self::new(address))
    }

    /// Returns the address of `--http` without a value.
    pub(super) fn default_http() -> Result<Self> {
        Self::parse_http(&PORT.to_string())
    }

    /// Returns the address of a program without flags.
    pub(super) fn default_stdio() -> Result<Self> {
        ListenAddress::Stdio.check_features()?;
        Ok(Self::new(ListenAddress::Stdio))
    }
}

impl ListenAddress {
    /// Returns an error if this build cannot serve it.
    pub(super) fn check_features(&self) -> Result<()> {
        let (feature, enabled) = match self {
            Self::Stdio => ("stdio", cfg!(feature = "stdio")),
            Self::Http { .. } => ("http-server", cfg!(feature = "http-server")),
            Self::Tcp(_) => ("net", cfg!(feature = "net")),
            #[cfg(not(unix))]
            Self::Unix(_) => return Err(Error::misuse("this system has no Unix sockets")),
            #[cfg(unix)]
            Self::Unix(_) => ("net", cfg!(feature = "net")),
        };
        match enabled {
            true => Ok(()),
            false => Err(Error::misuse(format!(
                "`{self}` is not supported by this build: enable the feature `{feature}` of `pintle`"
            ))),
        }
    }
}

fn http_url(text: &str, rest: &str) -> Result<ListenAddress> {
    let (address, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, PATH),
    };
    if text.contains(['?', '#', '@']) {
        return Err(Error::misuse(format!("`{text}` is more than a host, a port and a path")));
    }
    Ok(ListenAddress::Http { address: with_port(address, Some(PORT))?, path: path.into() })
}

/// Completes `8000`, `127.0.0.1` and `localhost:8000` to a host and a port. Without a default, the port is required.
fn with_port(text: &str, default: Option<u16>) -> Result<String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address.to_string());
    }
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string());
    }
    let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let (Ok(ip), Some(port)) = (unbracketed.parse::<IpAddr>(), default) {
        return Ok(SocketAddr::new(ip, port).to_string());
    }
    let is_host = |host: &str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    match text.rsplit_once(':') {
        Some(("", port)) => Err(Error::misuse(format!(
            "`{text}` has no host: write `127.0.0.1:{port}` for clients on this machine, or `0.0.0.0:{port}` for all"
        ))),
        Some((host, port)) if is_host(host) => match port.parse::<u16>() {
            Ok(port) => Ok(format!("{host}:{port}")),
            Err(_) => {
                Err(Error::misuse(format!("`{port}` in `{text}` is not a port: write a number up to 65535")))
            }
        },
        None if is_host(text) => match default {
            Some(port) => Ok(format!("{text}:{port}")),
            None => Err(Error::misuse(format!("`{text}` has no port: write `{text}:{PORT}`"))),
        },
        _ => Err(Error::misuse(format!("`{text}` is not an address: write `127.0.0.1:{PORT}`"))),
    }
}

fn no_scheme(text: &str) -> Error {
    Error::misuse(match with_port(text, Some(PORT)) {
        Ok(address) if text.contains([':', '.']) || text.parse::<u16>().is_ok() => {
            format!("`{text}` does not name a protocol: write `http://{address}`, or `tcp://{address}`")
        }
        _ => format!(
            "`{text}` is not an address to listen at: write `stdio`, `http://127.0.0.1:{PORT}`, `tcp://127.0.0.1:{PORT}` or `unix:/path`"
        ),
    })
}

#[cfg(all(test, feature = "http-server", feature = "net", feature = "stdio", unix))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (text, expected) in [
            ("stdio", "stdio"),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/mcp"),
            ("http://127.0.0.1:9000/tools/mcp", "http://127.0.0.1:9000/tools/mcp"),
            ("http://0.0.0.0", "http://0.0.0.0:8000/mcp"),
            ("http://[::1]:9000/", "http://[::1]:9000/"),
            ("http://[::1]", "http://[::1]:8000/mcp"),
            ("http://localhost:9000", "http://localhost:9000/mcp"),
            ("tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("unix:///run/a.sock", "unix:/run/a.sock"),
            ("unix:a.sock", "unix:a.sock"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), expected, "{text}");
        }
        for (text, expected) in [
            ("9000", "http://127.0.0.1:9000/mcp"),
            ("0.0.0.0", "http://0.0.0.0:8000/mcp"),
            ("::1", "http://[::1]:8000/mcp"),
            ("localhost", "http://localhost:8000/mcp"),
            ("build-7.local:80", "http://build-7.local:80/mcp"),
            ("http://127.0.0.1:9000/here", "http://127.0.0.1:9000/here"),
        ] {
            assert_eq!(Listen::parse_http(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn errors_state_what_to_write() {
        for (text, expected) in [
            ("127.0.0.1:8000", "does not name a protocol: write `http://127.0.0.1:8000`"),
            ("8000", "write `http://127.0.0.1:8000`"),
            ("sdtio", "write `stdio`"),
            ("", "write `stdio`"),
            ("ws://127.0.0.1:8000", "`ws://127.0.0.1:8000` is not an address to listen at"),
            ("https://a.example", "listen at `http://a.example` behind a proxy, or use `HttpServer::tls`"),
            ("http://a:70000", "`70000` in `a:70000` is not a port"),
            ("http://a:8000/x?y", "more than a host, a port and a path"),
            ("http://", "`` is not an address"),
            ("http://a b", "`a b` is not an address"),
            ("tcp://localhost", "`localhost` has no port: write `localhost:8000`"),
            ("unix:", "`unix:` needs a path"),
        ] {
            let error = text.parse::<Listen>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = Listen::parse_http(":8000").unwrap_err().to_string();
        assert!(error.contains("`127.0.0.1:8000` for clients on this machine"), "{error}");
        let error = Listen::parse_http("tcp://127.0.0.1:8000").unwrap_err().to_string();
        assert!(error.contains("is not an address of HTTP"), "{error}");
    }
}
