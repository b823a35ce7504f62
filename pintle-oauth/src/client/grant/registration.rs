//! How an authorization server gets to know the client: RFC 7591, where nobody has told it before.

use http::HeaderMap;
use pintle::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    client::{consent::callback::told, store::credentials::Registration},
    shared::{
        identity::{Identity, Method},
        metadata::ServerMetadata,
        registered::Proof,
        web::Guarded,
    },
};

/// Who the client is after it was registered.
pub(crate) fn given(registration: &Registration, server: &ServerMetadata) -> Identity {
    let named = registration.token_endpoint_auth_method.as_deref().and_then(Method::named);
    let (proof, method) = match &registration.client_secret {
        None => (Proof::None, Method::None),
        Some(secret) => {
            let secret = Proof::Secret(secret.clone());
            (secret, named.unwrap_or_else(|| Method::with_secret(server)))
        }
    };
    Identity { client_id: registration.client_id.clone(), proof, method }
}

/// Registers the client. What it gets is good for this redirect address, or for logins by another device.
pub(crate) async fn register(
    web: Guarded<'_>,
    server: &ServerMetadata,
    name: &str,
    redirect_uri: Option<&str>,
) -> Result<Registration> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(Error::Refused(format!(
            "the authorization server `{}` registers no clients by itself: register one with its operator and give \
             it to `OAuth::registered`",
            server.issuer
        )));
    };
    let body = request(name, redirect_uri, Method::to_register(server)).to_string();
    let answer = web.post(endpoint, "application/json", HeaderMap::new(), body).await?;
    if !answer.status().is_success() {
        let refusal: Refusal = serde_json::from_slice(answer.body()).unwrap_or_default();
        let status = answer.status().as_u16();
        let said = match refusal.error.as_str() {
            "" => format!("status {status}"),
            error => told(error, &refusal.error_description),
        };
        return Err(Error::Refused(format!(
            "the authorization server `{}` did not register the client: {said}",
            server.issuer
        )));
    }
    let mut registration: Registration = serde_json::from_slice(answer.body()).map_err(|_| {
        Error::Decode(format!("what `{endpoint}` answered is no registration: it has no `client_id`"))
    })?;
    registration.redirect_uri = redirect_uri.unwrap_or_default().to_owned();
    Ok(registration)
}

fn request(name: &str, redirect_uri: Option<&str>, method: Method) -> Value {
    let Some(redirect_uri) = redirect_uri else {
        // RFC 7591 §2: without `response_types` it is a client of the authorization endpoint, which needs an address.
        return json!({
            "client_name": name,
            "redirect_uris": [],
            "response_types": [],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            "token_endpoint_auth_method": method.name(),
            "application_type": "native",
        });
    };
    // [Client Registration, Dynamic]: what runs on the user's machine is `native`, or a strict server takes it for a
    // website and refuses its address.
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

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(methods: &[&str]) -> ServerMetadata {
        let methods = (!methods.is_empty()).then(|| methods.iter().map(|name| (*name).to_owned()).collect());
        ServerMetadata { token_endpoint_auth_methods_supported: methods, ..ServerMetadata::default() }
    }

    #[test]
    fn a_secret_is_asked_for_only_where_there_is_no_other_way() {
        let table: &[(&[&str], Method)] = &[
            (&[], Method::None),
            (&["none"], Method::None),
            (&["client_secret_basic"], Method::Basic),
            (&["client_secret_post"], Method::Post),
            (&["client_secret_post", "client_secret_basic", "none"], Method::None),
            (&["tls_client_auth", "client_secret_post"], Method::Post),
        ];
        for (methods, expected) in table {
            assert_eq!(Method::to_register(&server(methods)), *expected, "{methods:?}");
        }
    }

    #[test]
    fn what_registration_gave_is_used() {
        let given = |text: &str| super::given(&serde_json::from_str(text).unwrap(), &server(&[])).method;
        assert_eq!(given(r#"{"client_id":"c"}"#), Method::None);
        assert_eq!(given(r#"{"client_id":"c","client_secret":"s"}"#), Method::Basic);
        let post =
            r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#;
        assert_eq!(given(post), Method::Post);
        let none = r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"none"}"#;
        assert_eq!(given(none), Method::None);
    }

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
