//! Endpoints of an authorization server at other origins than its own.

use http::Uri;
use pintle::{Error, Result, proto::http::same_origin};

use crate::shared::{
    address,
    metadata::ServerMetadata,
    web::{Guarded, Lookup},
};

/// The endpoints at which users log in. What they issue is sent to the token endpoint.
const ISSUING: [&str; 2] = ["authorization_endpoint", "device_authorization_endpoint"];

/// Checks that the endpoints in the metadata of an issuer are not those of another one.
///
/// Otherwise a hostile issuer could name the login page of an honest one, and a token endpoint of its own: it would get the codes of the
/// honest one, unless that names itself in its redirects (a mix-up, RFC 9700 §4.4). An endpoint at another origin is used if the
/// metadata at that origin is of the same issuer, or has the same endpoints. If there is none, users log in there only if the token
/// endpoint is at that origin too.
pub(super) async fn check_owner(web: Guarded<'_>, server: &ServerMetadata) -> Result<()> {
    let Ok(issuer) = server.issuer.parse::<Uri>() else { return Ok(()) };
    let token: Option<Uri> = server.token_endpoint.as_deref().and_then(|url| url.parse().ok());
    // At most one for each endpoint.
    let mut seen: Vec<(Uri, Vec<ServerMetadata>)> = Vec::new();
    for (name, url) in server.endpoints() {
        // What cannot be requested is refused where it is used.
        let Ok(uri) = web.reach.check(url) else { continue };
        if same_origin(&uri, &issuer) {
            continue;
        }
        if !seen.iter().any(|(origin, _)| same_origin(origin, &uri)) {
            seen.push((uri.clone(), documents(web, &uri).await));
        }
        let found = seen.iter().find(|(origin, _)| same_origin(origin, &uri));
        let found = found.map(|(_, found)| found.as_slice()).unwrap_or_default();
        let is_accepted = match found {
            [] => !ISSUING.contains(&name) || token.as_ref().is_some_and(|token| same_origin(token, &uri)),
            found => {
                found.iter().any(|other| other.issuer == server.issuer || has_same_endpoints(other, server))
            }
        };
        if !is_accepted {
            let owner = match found.first() {
                Some(other) => format!("belongs to `{}`", address::printable(&other.issuer)),
                None => "is at another origin, and so is the token endpoint".to_owned(),
            };
            return Err(Error::Refused(format!(
                "the `{name}` of the authorization server `{}` is `{}`, which {owner}: nothing was sent to either; ask its operator \
                 to name endpoints of its own",
                server.issuer,
                address::printable(url)
            )));
        }
    }
    Ok(())
}

/// Returns the metadata that an origin publishes. One that cannot be reached has none.
async fn documents(web: Guarded<'_>, uri: &Uri) -> Vec<ServerMetadata> {
    let mut found = Vec::new();
    for place in address::metadata_urls(&address::origin(uri)).unwrap_or_default() {
        if let Ok(Lookup::Found(metadata)) = web.look::<ServerMetadata>(&place).await {
            found.push(metadata);
        }
    }
    found
}

/// Whether users log in at the same places, and codes are sent to the same place.
fn has_same_endpoints(other: &ServerMetadata, server: &ServerMetadata) -> bool {
    other.authorization_endpoint == server.authorization_endpoint
        && other.token_endpoint == server.token_endpoint
        && (server.device_authorization_endpoint.is_none()
            || other.device_authorization_endpoint == server.device_authorization_endpoint)
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, net::IpAddr};

    use bytes::Bytes;
    use http::{Request, Response};
    use serde_json::{Value, json};

    use super::*;
    use crate::shared::{reach::Reach, web::Web};

    /// Documents by their addresses.
    struct Documents(HashMap<String, Value>);

    impl Web for Documents {
        async fn send(&self, request: Request<Bytes>, _: Reach) -> Result<Response<Bytes>> {
            let document = self.0.get(&request.uri().to_string());
            let status = if document.is_some() { 200 } else { 404 };
            let body = document.map(Value::to_string).unwrap_or_default();
            Ok(Response::builder().status(status).body(body.into()).unwrap())
        }

        async fn addresses(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    fn document(issuer: &str, authorize: &str, token: &str) -> Value {
        json!({"issuer": issuer, "authorization_endpoint": authorize, "token_endpoint": token})
    }

    /// Checks a document of an issuer in a world with another document, at the origin of that.
    async fn checked(document: &Value, other: (&str, Value)) -> Result<()> {
        let place = format!("{}/.well-known/openid-configuration", other.0);
        let web = Documents(HashMap::from([(place, other.1)]));
        let reach = Reach::of(&"https://mcp.test".parse().unwrap(), &[]);
        check_owner(Guarded { web: &web, reach }, &serde_json::from_value(document.clone()).unwrap()).await
    }

    #[tokio::test]
    async fn documents_of_real_issuers_are_used() {
        let google = document(
            "https://accounts.google.com",
            "https://accounts.google.com/o/oauth2/v2/auth",
            "https://oauth2.googleapis.com/token",
        );
        // Its own server, which has its clients log in at Google itself.
        let mut in_front = google.clone();
        in_front["issuer"] = json!("https://mcp.example.com");
        in_front["registration_endpoint"] = json!("https://mcp.example.com/register");
        let entra = document(
            "https://login.microsoftonline.com/t/v2.0",
            "https://login.microsoftonline.com/t/oauth2/v2.0/authorize",
            "https://login.microsoftonline.com/t/oauth2/v2.0/token",
        );
        // Version 1: another origin than that of the issuer, for everything.
        let mut entra1 = entra.clone();
        entra1["issuer"] = json!("https://sts.windows.net/t/");
        let okta = document(
            "https://dev-1.okta.com/oauth2/default",
            "https://dev-1.okta.com/oauth2/default/v1/authorize",
            "https://dev-1.okta.com/oauth2/default/v1/token",
        );
        let cognito = document(
            "https://cognito-idp.eu-west-1.amazonaws.com/p",
            "https://d.auth.eu-west-1.amazoncognito.com/oauth2/authorize",
            "https://d.auth.eu-west-1.amazoncognito.com/oauth2/token",
        );
        let front =
            document("https://sso.test", "https://www.sso.test/authorize", "https://api.sso.test/token");
        for (document, other) in [
            (&google, ("https://accounts.google.com", google.clone())),
            (&in_front, ("https://accounts.google.com", google.clone())),
            (&entra, ("https://unrelated.test", json!({}))),
            (&entra1, ("https://unrelated.test", json!({}))),
            (&okta, ("https://dev-1.okta.com", json!({"issuer": "https://dev-1.okta.com"}))),
            (&cognito, ("https://unrelated.test", json!({}))),
            (&front, ("https://www.sso.test", front.clone())),
        ] {
            checked(document, other).await.unwrap();
        }
    }

    #[tokio::test]
    async fn endpoints_of_another_issuer_are_not_used() {
        let honest = document("https://as.test", "https://as.test/authorize", "https://as.test/token");
        let nobody = || ("https://unrelated.test", json!({}));
        for (authorize, token, other, expected) in [
            // The login page of an honest issuer, and an own token endpoint: with its metadata, and if it has none at its root.
            (
                "https://as.test/authorize",
                "https://evil.test/token",
                ("https://as.test", honest.clone()),
                "as.test",
            ),
            ("https://as.test/t/authorize", "https://evil.test/token", nobody(), "is at another origin"),
            ("https://as.test/t/authorize", "https://more.evil.test/token", nobody(), "is at another origin"),
            (
                "https://evil.test/authorize",
                "https://as.test/token",
                ("https://as.test", honest.clone()),
                "as.test",
            ),
            (
                "https://as.test/other",
                "https://as.test/token",
                ("https://as.test", honest.clone()),
                "as.test",
            ),
        ] {
            let evil = document("https://evil.test", authorize, token);
            let error = checked(&evil, other).await.unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("nothing was sent"), "{authorize}: {error}");
        }
        let mut device =
            document("https://evil.test", "https://evil.test/authorize", "https://evil.test/token");
        device["device_authorization_endpoint"] = json!("https://as.test/device");
        let error = checked(&device, nobody()).await.unwrap_err().to_string();
        assert!(error.contains("`device_authorization_endpoint`"), "{error}");
    }
}
