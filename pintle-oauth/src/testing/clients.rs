use std::collections::HashMap;

use serde_json::{Value, json};

use super::{answer::Answer, received::Received};

/// The registered clients of an authorization server.
#[derive(Debug, Default)]
pub(super) struct Clients(HashMap<String, Client>);

#[derive(Debug)]
struct Client {
    secret: Option<String>,
    /// The registered redirect addresses; `None`: any.
    redirect_uris: Option<Vec<String>>,
}

impl Clients {
    pub(super) fn add(&mut self, id: String, secret: Option<String>) {
        self.0.insert(id, Client { secret, redirect_uris: None });
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether this is a redirect address of the client, byte for byte. `None`: there is no such client.
    pub(super) fn may_send_to(&self, id: &str, redirect_uri: &str) -> Option<bool> {
        let client = self.0.get(id)?;
        let Some(registered) = &client.redirect_uris else { return Some(true) };
        Some(registered.iter().any(|uri| uri == redirect_uri))
    }

    /// Authenticates the client of a request.
    pub(super) fn authenticated(&self, received: &Received) -> Result<String, Answer> {
        let refused = |why: &str| Answer::refused("invalid_client", why);
        let (id, secret) = received.client().ok_or_else(|| refused("the client does not identify itself"))?;
        match self.0.get(&id) {
            None => Err(refused("no such client")),
            Some(client) if client.secret != secret => Err(refused("the client's secret is wrong")),
            Some(_) => Ok(id),
        }
    }

    /// Registers a client: RFC 7591.
    pub(super) fn register(&mut self, id: String, received: &Received) -> Answer {
        let refused = |error: &str, why: &str| Answer::refused(error, why);
        let Ok(mut asked) = serde_json::from_slice::<Value>(&received.body) else {
            return refused("invalid_client_metadata", "a JSON object is required");
        };
        let Some(members) = asked.as_object_mut() else {
            return refused("invalid_client_metadata", "a JSON object is required");
        };
        let uris = members.get("redirect_uris").and_then(Value::as_array);
        let uris: Vec<String> =
            uris.into_iter().flatten().filter_map(|uri| uri.as_str().map(str::to_owned)).collect();
        let logs_in = members
            .get("grant_types")
            .and_then(Value::as_array)
            .is_none_or(|grants| grants.iter().any(|grant| grant == "authorization_code"));
        if logs_in && uris.is_empty() {
            return refused("invalid_redirect_uri", "`redirect_uris` is empty");
        }
        // RFC 7591 §2: the default is a secret.
        let method = members.get("token_endpoint_auth_method").and_then(Value::as_str);
        let secret = (method != Some("none")).then(|| format!("secret-of-{id}"));
        members.insert("client_id".into(), json!(id));
        if let Some(secret) = &secret {
            members.insert("client_secret".into(), json!(secret));
            members.insert("client_secret_expires_at".into(), json!(0));
        }
        self.0.insert(id, Client { secret, redirect_uris: Some(uris) });
        Answer { status: 201, ..Answer::ok(asked) }
    }
}
