//! Discovery: which authorization server a protected server names, and its metadata.

mod endpoints;
mod resource_metadata;
mod well_known;

use http::Uri;
use pintle::{Error, Result, proto::http::same_origin};

use crate::shared::{
    address,
    metadata::ServerMetadata,
    web::{Guarded, Lookup},
};
use resource_metadata::{ResourceMetadata, about_server};

/// The authorization server of a protected server, and the resource that tokens are requested for.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    /// The resource of the tokens, byte for byte. `None` if the server has no resource metadata.
    pub(crate) resource: Option<String>,
    pub(crate) scopes: Option<Vec<String>>,
    /// The key of stored credentials: the issuer as it was verified, not as it calls itself.
    pub(crate) key: String,
    pub(crate) server: ServerMetadata,
    /// The reason why metadata was ignored, for the error of a login that fails afterwards.
    pub(crate) unused: Option<String>,
}

/// Discovers the authorization server of a server. `named` is the metadata address of its challenge; `wanted` is the issuer
/// of the client's secret, key or assertion, which are sent to no other.
pub(crate) async fn discover(
    web: Guarded<'_>,
    server: &Uri,
    named: Option<&str>,
    wanted: Option<&str>,
) -> Result<Discovered> {
    let Some(metadata) = of_resource(web, server, named).await? else {
        choose(&[address::origin(server)], wanted)?;
        return of_origin(web, server).await;
    };
    let issuer = choose(&metadata.authorization_servers, wanted)?;
    let server = ServerMetadata::fetch(web, issuer).await?;
    endpoints::check_owner(web, &server).await?;
    Ok(Discovered {
        resource: Some(metadata.resource),
        scopes: metadata.scopes_supported,
        key: issuer.clone(),
        server,
        unused: None,
    })
}

fn choose<'a>(offered: &'a [String], wanted: Option<&str>) -> Result<&'a String> {
    let chosen = match wanted {
        Some(wanted) => offered.iter().find(|issuer| *issuer == wanted),
        None => offered.first(),
    };
    chosen.ok_or_else(|| {
        Error::Refused(format!(
            "the client is registered with `{}`, and the server wants tokens of `{}`: nothing was sent there; if it is to be \
             trusted, register the client there and give that issuer",
            wanted.unwrap_or_default(),
            address::printable(&offered.join("`, `"))
        ))
    })
}

async fn of_resource(
    web: Guarded<'_>,
    server: &Uri,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>> {
    let places = well_known::metadata_urls(server);
    let mut failed = None;
    for place in named.into_iter().chain(places.iter().map(String::as_str)) {
        match web.look(place).await? {
            Lookup::Found(metadata) => return about_server(metadata, server).map(Some),
            Lookup::Failed(error) => drop(failed.get_or_insert(error)),
            Lookup::NotFound => {}
        }
    }
    // A server that fails is not one without metadata.
    failed.map_or(Ok(None), Err)
}

/// Returns the metadata of a server of the 2025-03-26 revision, which is its own authorization server: the issuer is its
/// origin, whatever a document there states.
///
/// A document that names another issuer is ignored: otherwise the server could choose both the `iss` that the callback is
/// compared with and the endpoint that the code is sent to.
async fn of_origin(web: Guarded<'_>, server: &Uri) -> Result<Discovered> {
    let origin = address::origin(server);
    let place = format!("{origin}/.well-known/oauth-authorization-server");
    let published = web.get::<ServerMetadata>(&place).await?;
    let mut found = Discovered {
        resource: None,
        scopes: None,
        key: origin.clone(),
        unused: None,
        server: ServerMetadata::default(),
    };
    found.server = match published.map(|metadata| own(metadata, server)) {
        Some(Ok(metadata)) => metadata,
        Some(Err(why)) => {
            tracing::warn!(place, why, "ignored the metadata of an authorization server");
            found.unused = Some(format!("the metadata at `{place}` was ignored: {why}"));
            ServerMetadata::assumed(&origin)
        }
        None => ServerMetadata::assumed(&origin),
    };
    // That revision requires PKCE and has no metadata for it.
    found.server.code_challenge_methods_supported.get_or_insert_with(|| vec!["S256".to_owned()]);
    Ok(found)
}

/// Checks metadata of a server that is its own authorization server, or returns why it is not.
fn own(mut metadata: ServerMetadata, server: &Uri) -> Result<ServerMetadata, String> {
    let is_own = |address: &str| {
        address.parse::<Uri>().is_ok_and(|uri| {
            let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
            !has_user && same_origin(&uri, server)
        })
    };
    if !is_own(&metadata.issuer) {
        return Err(format!(
            "its `issuer` is `{}`, which is not the server's origin",
            address::printable(&metadata.issuer)
        ));
    }
    if let Some((name, url)) = metadata.endpoints().find(|(_, url)| !is_own(url)) {
        let url = address::printable(url);
        return Err(format!("its `{name}` is `{url}`, which is not at the server's origin"));
    }
    // The origin may be written with a `/`. One with a path is no issuer of a document at the root (RFC 8414 §3.3).
    let origin = address::origin(server);
    if metadata.issuer.strip_suffix('/') != Some(&origin) {
        metadata.issuer = origin;
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(issuer: &str, more: &str) -> Result<String, String> {
        let text = format!(r#"{{"issuer":"{issuer}"{more}}}"#);
        own(serde_json::from_str(&text).unwrap(), &"https://h:8443/mcp".parse().unwrap())
            .map(|own| own.issuer)
    }

    #[test]
    fn a_document_of_somebody_else_is_not_the_servers_own() {
        for (issuer, used_as) in [
            ("https://h:8443", "https://h:8443"),
            ("https://h:8443/", "https://h:8443/"),
            ("https://H:8443", "https://h:8443"),
            ("https://h:8443/oauth", "https://h:8443"),
        ] {
            assert_eq!(read(issuer, "").as_deref(), Ok(used_as));
        }
        for issuer in [
            "",
            "h",
            "https://h",
            "http://h:8443",
            "https://honest:8443",
            "https://h:8443@evil",
            "https://x@h:8443",
        ] {
            assert!(read(issuer, "").is_err(), "{issuer}");
        }
    }

    #[test]
    fn endpoints_elsewhere_are_not_the_servers_own() {
        for name in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "device_authorization_endpoint",
        ] {
            let with = |url: &str| read("https://h:8443", &format!(r#","{name}":"{url}""#));
            assert!(with("https://h:8443/x?y").is_ok());
            for url in [
                "https://evil/x",
                "https://h/x",
                "http://h:8443/x",
                "/x",
                "https://h:8443@evil/x",
                "https://me@h:8443/x",
            ] {
                assert!(with(url).unwrap_err().contains(name), "{url}");
            }
        }
    }
}
