use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};

use super::{asked::Log, clients::Clients, fault::Faults, hold::HoldState, tokens::IssuedTokens};
use crate::shared::jwt::SigningKey;

/// The limit of each kind of entries. More are refused.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// The state of an authorization server.
#[derive(Debug)]
pub(super) struct State {
    /// The user who logs in.
    pub(super) subject: String,
    pub(super) lifetime: Duration,
    /// Whether access tokens are opaque.
    pub(super) opaque: bool,
    /// The scopes that users consent to; `None`: all.
    pub(super) agreed: Option<Vec<String>>,
    /// The offset of its clock in seconds.
    pub(super) ahead: i64,
    /// Changed members of the metadata.
    pub(super) members: Map<String, Value>,
    /// The trusted assertions.
    pub(super) assertions: Vec<String>,
    /// The nonce of DPoP proofs. If there is one, tokens are bound to keys.
    pub(super) nonce: Option<String>,
    pub(super) key: TokenKey,
    pub(super) clients: Clients,
    pub(super) tokens: IssuedTokens,
    pub(super) faults: Faults,
    pub(super) holds: Vec<Arc<HoldState>>,
    pub(super) log: Log,
    named: u64,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            subject: "user".into(),
            lifetime: Duration::from_secs(3600),
            opaque: false,
            agreed: None,
            ahead: 0,
            members: Map::new(),
            assertions: Vec::new(),
            nonce: None,
            key: TokenKey::new("key-1"),
            clients: Clients::default(),
            tokens: IssuedTokens::default(),
            faults: Faults::default(),
            holds: Vec::new(),
            log: Log::default(),
            named: 0,
        }
    }

    /// Returns the time of its clock in seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        real.saturating_add_signed(self.ahead)
    }

    /// Returns a new predictable name.
    pub(super) fn name(&mut self, what: &str) -> String {
        self.named += 1;
        format!("{what}-{}", self.named)
    }

    /// Rotates the key. The old one is no longer published.
    pub(super) fn rotate_key(&mut self) {
        let id = self.name("key");
        self.key = TokenKey::new(&id);
    }

    /// Returns the scopes that users consent to.
    pub(super) fn agreed_of(&self, asked: &str) -> String {
        let Some(agreed) = &self.agreed else { return asked.to_owned() };
        let agreed = |scope: &&str| agreed.iter().any(|agreed| agreed == scope);
        asked.split(' ').filter(agreed).collect::<Vec<_>>().join(" ")
    }

    /// Whether a client's id is the address of a metadata document, which is assumed to exist and to allow everything.
    pub(super) fn reads_document(&self, client: &str) -> bool {
        let reads = self.members.get("client_id_metadata_document_supported");
        client.starts_with("https://") && reads.is_some_and(|reads| *reads == true)
    }

    pub(super) fn is_full(&self) -> bool {
        self.clients.len() + self.tokens.len() >= MAX_ENTRIES
    }
}

/// A key that tokens are signed with.
#[derive(Debug)]
pub(super) struct TokenKey {
    key: SigningKey,
    id: String,
}

impl TokenKey {
    pub(super) fn new(id: &str) -> Self {
        let (key, _) = SigningKey::generate().expect("the system has random numbers");
        Self { key, id: id.to_owned() }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn jwk(&self) -> Value {
        let mut jwk = self.key.jwk();
        jwk["kid"] = json!(self.id);
        jwk["alg"] = json!("ES256");
        jwk["use"] = json!("sig");
        jwk
    }

    /// Signs an access token: RFC 9068.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = json!({ "typ": "at+jwt", "kid": self.id });
        self.key.sign(header, claims).expect("the generated key signs")
    }
}
