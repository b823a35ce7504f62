//! Discovery: which authorization server a protected server names, and its metadata.

mod resource_metadata;
mod well_known;

use http::Uri;
use pintle::{Error, Result, proto::http::same_origin};

use crate::shared::{
    address,
    metadata::ServerMetadata,
    web::{Guarded, Looked},
};
use resource_metadata::{ResourceMetadata, about_server};

/// What was found out about a server and who authorizes for it.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    /// What tokens are for, byte for byte. A server without resource metadata has not said.
    pub(crate) resource: Option<String>,
    pub(crate) scopes: Option<Vec<String>>,
    /// What credentials are kept under: the issuer, as it was checked and not as it calls itself.
    pub(crate) key: String,
    pub(crate) server: ServerMetadata,
    /// Metadata that could not be used, and why: for the error of a login that then fails.
    pub(crate) unused: Option<String>,
}

/// Finds out who authorizes for a server. `named` is where its challenge says that its metadata is; `wanted` is the
/// issuer that the client's secret, key or assertion is for: no other is let near it.
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
            Looked::There(metadata) => return about_server(metadata, server).map(Some),
            Looked::Failed(error) => drop(failed.get_or_insert(error)),
            Looked::NotThere => {}
        }
    }
    // A server that does not say is not one that has nothing to say.
    failed.map_or(Ok(None), Err)
}

/// Servers of the 2025-03-26 revision are their own authorization server: the issuer is their origin, whatever a document
/// there says.
///
/// A document that names somebody else is not used: the callback's `iss` would be compared with what the server made up,
/// and the code would go to the endpoint that it made up.
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
            tracing::warn!(place, why, "the metadata of an authorization server is not used");
            found.unused = Some(format!("the metadata at `{place}` was not used: {why}"));
            ServerMetadata::assumed(&origin)
        }
        None => ServerMetadata::assumed(&origin),
    };
    // That revision wants PKCE of everyone, and has no words to say so.
    found.server.code_challenge_methods_supported.get_or_insert_with(|| vec!["S256".to_owned()]);
    Ok(found)
}

/// The metadata of a server that is its own authorization server, or why it is not that.
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
