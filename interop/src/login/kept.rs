use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle::{Error, Result};
use pintle_oauth::client::{Credentials, Store};
use serde_json::{Value, json};

use crate::Wrong;

/// The stored data of a client, as it would be written to a file. Tests inspect and age it.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<Mutex<BTreeMap<String, Value>>>);

impl Kept {
    /// Makes all tokens look as if they had expired.
    pub(super) fn age(&self) {
        for credentials in self.all().values_mut() {
            for tokens in
                credentials["tokens"].as_object_mut().into_iter().flat_map(|tokens| tokens.values_mut())
            {
                tokens["stale_at"] = json!(1);
            }
        }
    }

    /// The one access token that is kept.
    pub(super) fn access(&self) -> std::result::Result<String, Wrong> {
        self.one("access")
    }

    pub(super) fn refresh(&self) -> std::result::Result<String, Wrong> {
        self.one("refresh")
    }

    pub(super) fn client_id(&self) -> std::result::Result<String, Wrong> {
        self.one("client_id")
    }

    fn one(&self, member: &str) -> std::result::Result<String, Wrong> {
        let all = self.all();
        let mut tokens = all.values().filter_map(|credentials| credentials["tokens"].as_object()).flatten();
        let (Some((_, found)), None) = (tokens.next(), tokens.next()) else {
            return Err(Wrong::new(format!("there should be one token, and there is not: {:?}", all.keys())));
        };
        let found = found[member].as_str().ok_or_else(|| Wrong::new(format!("no `{member}` is kept")))?;
        Ok(found.to_owned())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Kept {
    async fn load(&self, issuer: &str) -> Result<Option<Credentials>> {
        let found = self.all().get(issuer).cloned();
        found.map(|found| serde_json::from_value(found).map_err(|error| unread(&error))).transpose()
    }

    async fn save(&self, issuer: &str, credentials: &Credentials) -> Result<()> {
        let credentials = serde_json::to_value(credentials).map_err(|error| unread(&error))?;
        self.all().insert(issuer.to_owned(), credentials);
        Ok(())
    }
}

fn unread(error: &serde_json::Error) -> Error {
    Error::Decode(format!("kept credentials: {error}"))
}
