use http::Uri;
use pintle::{Error, Result};

use super::{
    metadata::ServerMetadata,
    places,
    resource_metadata::{ResourceMetadata, about_server},
    web::Guarded,
};

/// What was found out about a server and who authorizes for it.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// What tokens are for, byte for byte. A server without resource metadata has not said.
    pub(super) resource: Option<String>,
    pub(super) scopes: Option<Vec<String>>,
    /// What credentials are kept under: the issuer, as it was checked and not as it calls itself.
    pub(super) key: String,
    pub(super) server: ServerMetadata,
}

/// Finds out who authorizes for a server. `named` is where its challenge says that its metadata is; `wanted` is the
/// issuer to choose if it offers several.
pub(super) async fn discover(
    web: Guarded<'_>,
    server: &Uri,
    named: Option<&str>,
    wanted: Option<&str>,
) -> Result<Found> {
    let Some(metadata) = of_resource(web, server, named).await? else {
        choose(&[places::origin(server)], wanted)?;
        return of_origin(web, server).await;
    };
    let issuer = choose(&metadata.authorization_servers, wanted)?;
    let server = ServerMetadata::fetch(web, issuer).await?;
    Ok(Found {
        resource: Some(metadata.resource),
        scopes: metadata.scopes_supported,
        key: issuer.clone(),
        server,
    })
}

fn choose<'a>(offered: &'a [String], wanted: Option<&str>) -> Result<&'a String> {
    let chosen = match wanted {
        Some(wanted) => offered.iter().find(|issuer| *issuer == wanted),
        None => offered.first(),
    };
    chosen.ok_or_else(|| {
        Error::Refused(format!(
            "the client is registered with `{}`, and the server wants tokens of `{}`: register there too",
            wanted.unwrap_or_default(),
            offered.join("`, `")
        ))
    })
}

async fn of_resource(
    web: Guarded<'_>,
    server: &Uri,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>> {
    let places = places::of_resource(server);
    for place in named.into_iter().chain(places.iter().map(String::as_str)) {
        if let Some(metadata) = web.get(place).await? {
            return about_server(metadata, server).map(Some);
        }
    }
    Ok(None)
}

/// Servers of the 2025-03-26 revision are their own authorization server, or say at their root who is.
///
/// Whatever issuer is named there, credentials are kept under the server's origin: it could name anyone.
async fn of_origin(web: Guarded<'_>, server: &Uri) -> Result<Found> {
    let origin = places::origin(server);
    let place = format!("{origin}/.well-known/oauth-authorization-server");
    let mut metadata =
        web.get::<ServerMetadata>(&place).await?.unwrap_or_else(|| ServerMetadata::assumed(&origin));
    // That revision wants PKCE of everyone, and has no words to say so.
    metadata.code_challenge_methods_supported.get_or_insert_with(|| vec!["S256".to_owned()]);
    Ok(Found { resource: None, scopes: None, key: origin, server: metadata })
}
