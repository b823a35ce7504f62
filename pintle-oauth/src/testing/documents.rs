//! The documents that an authorization server publishes.

use serde_json::{Value, json};

use super::{claims::change, endpoint::Endpoint, fault::Fault, state::State};

/// Returns the metadata: RFC 8414, or OpenID Connect Discovery, which requires two members more.
pub(super) fn metadata(state: &mut State, issuer: &str, endpoint: Endpoint) -> Value {
    let base = issuer.trim_end_matches('/');
    let at = |endpoint: Endpoint| format!("{base}{}", endpoint.name());
    let mut metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": at(Endpoint::Authorize),
        "token_endpoint": at(Endpoint::Token),
        "registration_endpoint": at(Endpoint::Register),
        "device_authorization_endpoint": at(Endpoint::Device),
        "introspection_endpoint": at(Endpoint::Introspect),
        "revocation_endpoint": at(Endpoint::Revoke),
        "jwks_uri": at(Endpoint::Keys),
        "response_types_supported": ["code"],
        "grant_types_supported": [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:device_code",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "authorization_response_iss_parameter_supported": true,
    });
    if endpoint == Endpoint::OpenidConfiguration {
        metadata["subject_types_supported"] = json!(["public"]);
        metadata["id_token_signing_alg_values_supported"] = json!(["ES256"]);
    }
    if state.nonce.is_some() {
        metadata["dpop_signing_alg_values_supported"] = json!(["ES256"]);
    }
    change(&mut metadata, state.members.clone());
    let wrong = state.faults.all(|fault| match fault {
        Fault::Metadata(member, value) => Some((member.clone(), value.clone())),
        _ => None,
    });
    change(&mut metadata, wrong);
    metadata
}

/// Returns the keys for verifying tokens: RFC 7517.
pub(super) fn keys(state: &State) -> Value {
    json!({ "keys": [state.key.jwk()] })
}
