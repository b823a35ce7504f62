//! How an authorization server gets to know the client: RFC 7591, where nobody has told it before.

use http::HeaderMap;
use pintle::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    callback::told,
    credentials::Registration,
    metadata::ServerMetadata,
    registered::{Proof, Registered},
    web::Guarded,
};

/// Who the client is, to one authorization server, and how it proves that at the token endpoint.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) client_id: String,
    pub(super) proof: Proof,
    pub(super) method: Method,
}

/// How a client proves itself at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    None,
    Basic,
    Post,
    Jwt,
}

impl Method {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::None,
            "client_secret_basic" => Self::Basic,
            "client_secret_post" => Self::Post,
            "private_key_jwt" => Self::Jwt,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::Jwt => "private_key_jwt",
        }
    }

    /// What a client with a secret does: RFC 8414 says `client_secret_basic` of a server that does not say.
    fn with_secret(server: &ServerMetadata) -> Self {
        let supported = supported(server);
        if supported.is_empty() || supported.contains(&Self::Basic) || !supported.contains(&Self::Post) {
            Self::Basic
        } else {
            Self::Post
        }
    }

    /// What a client asks to be registered with: a secret only where there is no other way.
    fn to_register(server: &ServerMetadata) -> Self {
        let supported = supported(server);
        if supported.is_empty() || supported.contains(&Self::None) {
            Self::None
        } else {
            Self::with_secret(server)
        }
    }
}

fn supported(server: &ServerMetadata) -> Vec<Method> {
    let names = server.token_endpoint_auth_methods_supported.iter().flatten();
    names.filter_map(|name| Method::named(name)).collect()
}

impl Identity {
    pub(super) fn registered(client: &Registered, server: &ServerMetadata) -> Self {
        let method = match &client.proof {
            Proof::None => Method::None,
            Proof::Secret(_) => Method::with_secret(server),
            Proof::Key(_) => Method::Jwt,
        };
        Self { client_id: client.client_id.clone(), proof: client.proof.clone(), method }
    }

    /// A client whose id is the address of a document about it.
    pub(super) fn documented(url: &str) -> Self {
        Self { client_id: url.to_owned(), proof: Proof::None, method: Method::None }
    }

    pub(super) fn given(registration: &Registration, server: &ServerMetadata) -> Self {
        let named = registration.token_endpoint_auth_method.as_deref().and_then(Method::named);
        let (proof, method) = match &registration.client_secret {
            None => (Proof::None, Method::None),
            Some(secret) => {
                let secret = Proof::Secret(secret.clone());
                (secret, named.unwrap_or_else(|| Method::with_secret(server)))
            }
        };
        Self { client_id: registration.client_id.clone(), proof, method }
    }
}

/// Registers the client. What it gets is good for this redirect address, or for logins by another device.
pub(super) async fn register(
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
    fn methods_are_those_that_the_server_has() {
        let table: &[(&[&str], Method, Method)] = &[
            (&[], Method::None, Method::Basic),
            (&["none"], Method::None, Method::Basic),
            (&["client_secret_basic"], Method::Basic, Method::Basic),
            (&["client_secret_post"], Method::Post, Method::Post),
            (&["client_secret_post", "client_secret_basic", "none"], Method::None, Method::Basic),
            (&["tls_client_auth", "client_secret_post"], Method::Post, Method::Post),
        ];
        for (methods, to_register, with_secret) in table {
            let server = server(methods);
            assert_eq!(Method::to_register(&server), *to_register, "{methods:?}");
            let client = Registered::new("c").secret("s");
            assert_eq!(Identity::registered(&client, &server).method, *with_secret, "{methods:?}");
        }
    }

    #[test]
    fn what_registration_gave_is_used() {
        let given = |text: &str| Identity::given(&serde_json::from_str(text).unwrap(), &server(&[])).method;
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
