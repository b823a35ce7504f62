//! Dynamic client registration: RFC 7591.

use http::HeaderMap;
use pintle::{Error, Result};
use serde_json::{Value, json};

use super::token::ErrorResponse;
use crate::{
    client::{consent::callback::error_text, store::credentials::Registration},
    shared::{identity::Method, metadata::ServerMetadata, web::Guarded},
};

/// Registers the client for this redirect address, or for device codes if there is none.
pub(crate) async fn register(
    web: Guarded<'_>,
    server: &ServerMetadata,
    name: &str,
    redirect_uri: Option<&str>,
) -> Result<Registration> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(Error::Refused(format!(
            "the authorization server `{}` does not support dynamic client registration; register a client with its \
             operator and pass it to `OAuth::registered`",
            server.issuer
        )));
    };
    let body = request(name, redirect_uri, Method::to_register(server)).to_string();
    let answer = web.post(endpoint, "application/json", HeaderMap::new(), body).await?;
    if !answer.status().is_success() {
        let refusal: ErrorResponse = serde_json::from_slice(answer.body()).unwrap_or_default();
        let status = answer.status().as_u16();
        let description = match refusal.error.as_str() {
            "" => format!("status {status}"),
            error => error_text(error, &refusal.error_description),
        };
        return Err(Error::Refused(format!(
            "the authorization server `{}` did not register the client: {description}",
            server.issuer
        )));
    }
    let mut registration: Registration = serde_json::from_slice(answer.body()).map_err(|_| {
        Error::Decode(format!("the response of `{endpoint}` is not a registration: it has no `client_id`"))
    })?;
    registration.redirect_uri = redirect_uri.unwrap_or_default().to_owned();
    Ok(registration)
}

fn request(name: &str, redirect_uri: Option<&str>, method: Method) -> Value {
    let Some(redirect_uri) = redirect_uri else {
        // RFC 7591 §2: without `response_types` it would be a client of the authorization endpoint, which needs an address.
        return json!({
            "client_name": name,
            "redirect_uris": [],
            "response_types": [],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "token_endpoint_auth_method": method.name(),
            "application_type": "native",
        });
    };
    // [Client Registration, Dynamic]: a program on the user's machine is `native`; a strict server would refuse its
    // address to a `web` client.
    let kind = if redirect_uri.starts_with("https:") { "web" } else { "native" };
    json!({
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.name(),
        "application_type": kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_for_other_devices_is_sent_back_nowhere() {
        let asked = request("App", None, Method::None);
        assert_eq!((&asked["redirect_uris"], &asked["response_types"]), (&json!([]), &json!([])));
    }

    #[test]
    fn an_application_says_where_it_runs() {
        for (address, kind) in [
            ("http://127.0.0.1:1/callback", "native"),
            ("com.example.app:/callback", "native"),
            ("https://app.example.com/callback", "web"),
        ] {
            assert_eq!(request("App", Some(address), Method::None)["application_type"], kind);
        }
    }
}
