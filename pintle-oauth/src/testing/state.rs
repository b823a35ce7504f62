use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};

use super::{asked::Log, clients::Clients, fault::Faults, gate::Held, tokens::Tokens};
use crate::shared::jwt::SigningKey;

/// Everything that an authorization server remembers. Far more than a test asks of it, and it takes no more.
pub(super) const MOST: usize = 100_000;

/// What an authorization server is at the moment.
#[derive(Debug)]
pub(super) struct State {
    /// Who logs in.
    pub(super) subject: String,
    pub(super) lifetime: Duration,
    /// Whether tokens say nothing to those who do not ask.
    pub(super) opaque: bool,
    /// All that users agree to; everything if nothing is said.
    pub(super) agreed: Option<Vec<String>>,
    /// How many seconds its clock is ahead.
    pub(super) ahead: i64,
    /// What metadata says besides.
    pub(super) members: Map<String, Value>,
    /// What platforms and identity providers may say.
    pub(super) assertions: Vec<String>,
    /// What proofs of a key have to hold; tokens are bound to keys then.
    pub(super) nonce: Option<String>,
    pub(super) key: Key,
    pub(super) clients: Clients,
    pub(super) tokens: Tokens,
    pub(super) faults: Faults,
    pub(super) gates: Vec<Arc<Held>>,
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
            key: Key::new("key-1"),
            clients: Clients::default(),
            tokens: Tokens::default(),
            faults: Faults::default(),
            gates: Vec::new(),
            log: Log::default(),
            named: 0,
        }
    }

    /// What its clock says, in seconds since 1970.
    pub(super) fn now(&self) -> u64 {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        real.saturating_add_signed(self.ahead)
    }

    /// A new name: nobody has to guess it, and a test can say which one it is.
    pub(super) fn name(&mut self, what: &str) -> String {
        self.named += 1;
        format!("{what}-{}", self.named)
    }

    /// Signs with another key from now on; the old one is not published any more.
    pub(super) fn rotate_key(&mut self) {
        let id = self.name("key");
        self.key = Key::new(&id);
    }

    /// What of these scopes users agree to.
    pub(super) fn agreed_of(&self, asked: &str) -> String {
        let Some(agreed) = &self.agreed else { return asked.to_owned() };
        let agreed = |scope: &&str| agreed.iter().any(|agreed| agreed == scope);
        asked.split(' ').filter(agreed).collect::<Vec<_>>().join(" ")
    }

    /// Whether a client's id is the address of a document about it, which is taken to be there and to allow everything.
    pub(super) fn reads_document(&self, client: &str) -> bool {
        let reads = self.members.get("client_id_metadata_document_supported");
        client.starts_with("https://") && reads.is_some_and(|reads| *reads == true)
    }

    pub(super) fn is_full(&self) -> bool {
        self.clients.len() + self.tokens.len() >= MOST
    }
}

/// A key that tokens are signed with.
#[derive(Debug)]
pub(super) struct Key {
    key: SigningKey,
    id: String,
}

impl Key {
    pub(super) fn new(id: &str) -> Self {
        let (key, _) = SigningKey::generate().expect("the system has random numbers to give");
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

    /// An access token: RFC 9068.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = json!({ "typ": "at+jwt", "kid": self.id });
        self.key.sign(header, claims).expect("a key of our own signs")
    }
}
