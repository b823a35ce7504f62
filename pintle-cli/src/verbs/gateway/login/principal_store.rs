use pintle_oauth::client::{Credentials, FileStore, Store, StoreLock};

use crate::{auth::principal_credentials, failure::Failure};

/// The credentials of one principal for one target, among those of all: a file of their own, which no other verb reads.
#[derive(Clone, Debug)]
pub(super) struct PrincipalStore {
    file: FileStore,
    /// The gateway, the issuer of its clients, the target and the principal.
    owner: Vec<String>,
}

impl PrincipalStore {
    /// Returns the part of the file that belongs to an owner.
    pub(super) fn of(owner: Vec<String>) -> Result<Self, Failure> {
        Ok(Self { file: principal_credentials()?, owner })
    }

    /// Returns the key of the credentials. No two owners have the same.
    fn key(&self, issuer: &str) -> String {
        let parts: Vec<_> = self.owner.iter().map(String::as_str).chain([issuer]).collect();
        serde_json::json!(parts).to_string()
    }
}

impl Store for PrincipalStore {
    async fn load(&self, issuer: &str) -> pintle::Result<Option<Credentials>> {
        self.file.load(&self.key(issuer)).await
    }

    async fn save(&self, issuer: &str, credentials: &Credentials) -> pintle::Result<()> {
        self.file.save(&self.key(issuer), credentials).await
    }

    async fn lock(&self, issuer: &str) -> pintle::Result<StoreLock> {
        self.file.lock(&self.key(issuer)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_owners_have_the_same_key() {
        let store = |owner: &[&str]| PrincipalStore {
            file: FileStore::at("unused.json"),
            owner: owner.iter().map(|part| (*part).to_owned()).collect(),
        };
        let keys = [
            store(&["g", "notes", "ann"]).key("i"),
            store(&["g", "notes", "ann\",\"i"]).key("i"),
            store(&["g", "notes\",\"ann"]).key("i"),
            store(&["g", "notes", "bob"]).key("i"),
            store(&["g", "other", "ann"]).key("i"),
            store(&["g", "notes", "ann"]).key("j"),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == key), Some(at), "{key}");
        }
    }
}
