use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use pintle::{Error, Result};

use super::{
    clock,
    form::{Form, encoded},
    metadata::ServerMetadata,
    registered::{Proof, Registered},
};

/// The identity of the client at one authorization server, with its authentication at the token endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) client_id: String,
    pub(crate) proof: Proof,
    pub(crate) method: Method,
}

/// The authentication method of a client at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Method {
    None,
    Basic,
    Post,
    Jwt,
}

impl Method {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::None,
            "client_secret_basic" => Self::Basic,
            "client_secret_post" => Self::Post,
            "private_key_jwt" => Self::Jwt,
            _ => return None,
        })
    }

    #[cfg(feature = "client")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::Jwt => "private_key_jwt",
        }
    }

    /// Returns the method of a client with a secret. The default of RFC 8414 is `client_secret_basic`.
    pub(crate) fn with_secret(server: &ServerMetadata) -> Self {
        let supported = supported(server);
        if supported.is_empty() || supported.contains(&Self::Basic) || !supported.contains(&Self::Post) {
            Self::Basic
        } else {
            Self::Post
        }
    }

    /// Returns the method to register with: one with a secret only where there is no other.
    #[cfg(feature = "client")]
    pub(crate) fn to_register(server: &ServerMetadata) -> Self {
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
    pub(crate) fn registered(client: &Registered, server: &ServerMetadata) -> Self {
        let method = match &client.proof {
            Proof::None => Method::None,
            Proof::Secret(_) => Method::with_secret(server),
            Proof::Key(_) => Method::Jwt,
        };
        Self { client_id: client.client_id.clone(), proof: client.proof.clone(), method }
    }

    /// Returns a client whose id is the address of its metadata document.
    #[cfg(feature = "client")]
    pub(crate) fn documented(url: &str) -> Self {
        Self { client_id: url.to_owned(), proof: Proof::None, method: Method::None }
    }

    /// Adds the client's authentication to a request. `audience` is the audience of an assertion.
    pub(crate) fn prove(&self, audience: &str, headers: &mut HeaderMap, form: &mut Form) -> Result<()> {
        match (self.method, &self.proof) {
            (Method::Basic, Proof::Secret(secret)) => {
                let pair = format!("{}:{}", encoded(&self.client_id), encoded(secret.reveal()));
                let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
                let mut value = value.map_err(|_| {
                    Error::Misuse(
                        "the client secret contains characters that are not allowed in a header".into(),
                    )
                })?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            (Method::Post, Proof::Secret(secret)) => {
                form.push("client_id", &self.client_id);
                form.push("client_secret", secret.reveal());
            }
            (Method::Jwt, Proof::Key(key)) => {
                let assertion = key.client_assertion(&self.client_id, audience, clock::now())?;
                form.push("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                form.push("client_assertion", &assertion);
            }
            _ => form.push("client_id", &self.client_id),
        }
        Ok(())
    }
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
        let table: &[(&[&str], Method)] = &[
            (&[], Method::Basic),
            (&["none"], Method::Basic),
            (&["client_secret_basic"], Method::Basic),
            (&["client_secret_post"], Method::Post),
            (&["client_secret_post", "client_secret_basic", "none"], Method::Basic),
            (&["tls_client_auth", "client_secret_post"], Method::Post),
        ];
        for (methods, with_secret) in table {
            let server = server(methods);
            let client = Registered::new("https://as", "c").secret("s");
            assert_eq!(Identity::registered(&client, &server).method, *with_secret, "{methods:?}");
        }
    }

    #[cfg(feature = "client")]
    #[test]
    fn a_secret_is_requested_only_where_there_is_no_other_way() {
        let table: &[(&[&str], Method)] = &[
            (&[], Method::None),
            (&["none"], Method::None),
            (&["client_secret_basic"], Method::Basic),
            (&["client_secret_post"], Method::Post),
            (&["client_secret_post", "client_secret_basic", "none"], Method::None),
            (&["tls_client_auth", "client_secret_post"], Method::Post),
            (&["private_key_jwt"], Method::Basic),
        ];
        for (methods, expected) in table {
            assert_eq!(Method::to_register(&server(methods)), *expected, "{methods:?}");
        }
    }

    #[test]
    fn what_proves_a_client_is_where_its_method_says() {
        let proven = |proof: Proof, method: Method| {
            let identity = Identity { client_id: "a b:c".into(), proof, method };
            let (mut headers, mut form) = (HeaderMap::new(), Form::new());
            identity.prove("https://as", &mut headers, &mut form).unwrap();
            let header = headers.get(AUTHORIZATION).map(|value| {
                assert!(value.is_sensitive());
                value.to_str().unwrap().to_owned()
            });
            (header.unwrap_or_default(), form.into_body())
        };
        let secret = || Proof::Secret("s&+".into());
        // RFC 6749 §2.3.1: both halves are encoded as in a form, so that the colon between them is the only one.
        let basic = format!("Basic {}", STANDARD.encode("a%20b%3Ac:s%26%2B"));
        assert_eq!(proven(secret(), Method::Basic), (basic, String::new()));
        let posted = "client_id=a%20b%3Ac&client_secret=s%26%2B";
        assert_eq!(proven(secret(), Method::Post), (String::new(), posted.to_owned()));
        let by = &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let random = ring::rand::SystemRandom::new();
        let key = STANDARD.encode(ring::signature::EcdsaKeyPair::generate_pkcs8(by, &random).unwrap());
        let key = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        let client = Registered::new("https://as", "c").key(&key).unwrap();
        let (header, asserted) = proven(client.proof, Method::Jwt);
        assert!(header.is_empty() && asserted.contains("jwt-bearer&client_assertion=ey"), "{asserted}");
        // A secret is shown only in a way that takes one.
        let named = (String::new(), "client_id=a%20b%3Ac".to_owned());
        for (proof, method) in [
            (Proof::None, Method::None),
            (secret(), Method::None),
            (secret(), Method::Jwt),
            (Proof::None, Method::Basic),
            (Proof::None, Method::Post),
        ] {
            assert_eq!(proven(proof, method), named, "{method:?}");
        }
    }

    #[test]
    #[cfg(feature = "client")]
    fn a_method_is_registered_under_the_name_that_it_is_known_by() {
        for method in [Method::None, Method::Basic, Method::Post, Method::Jwt] {
            assert_eq!(Method::named(method.name()), Some(method));
        }
    }
}
