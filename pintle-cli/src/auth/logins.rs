use std::env;

use pintle::Error;
use pintle_oauth::client::{Consent, FileStore, OAuth, Registered, StoredLogin};
use serde::{Deserialize, Serialize};

use crate::{failure::Failure, storage};

/// The maximum size of the file.
const MAX_BYTES: u64 = 4 << 20;
const FILE: &str = "logins.json";
const CREDENTIALS: &str = "credentials.json";
/// The tokens of the principals of gateways, which are not those of the user.
const PRINCIPALS: &str = "principals.json";
/// The limit of logins of principals that are kept, each of one principal to one target.
const MAX_PRINCIPALS: usize = 5_000;

/// The name that users are shown as the application.
pub(crate) const APPLICATION: &str = "pintle";

/// The servers that the user has logged in to. It has no secrets: [`credentials`] has the tokens.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Logins {
    pub(crate) logins: Vec<Login>,
}

/// A login, and how it was made.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Login {
    /// The URL of the server, without its query.
    pub(crate) url: String,
    pub(crate) grant: Grant,
    pub(crate) issuer: String,
    /// The resource that the tokens are for.
    pub(crate) resource: String,
    /// The client, if it was registered beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    /// The environment variable with the client's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret_env: Option<String>,
}

/// The way to log in.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Grant {
    User,
    ClientCredentials,
}

impl Logins {
    /// Returns the stored logins. Where they cannot be read, there are none.
    pub(crate) fn load() -> Self {
        let Some(path) = storage::path() else { return Self::default() };
        let read = storage::read_private(&path.join(FILE), MAX_BYTES);
        let bytes = read.ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(crate) fn find(&self, url: &str) -> Option<&Login> {
        self.logins.iter().find(|login| login.url == url)
    }

    /// Stores a login in place of the one for its URL.
    pub(crate) fn add(login: Login) -> Result<(), Failure> {
        let mut all = Self::load();
        all.logins.retain(|known| known.url != login.url);
        all.logins.push(login);
        all.save()
    }

    /// Removes the login for a URL.
    pub(crate) fn remove(url: &str) -> Result<(), Failure> {
        let mut all = Self::load();
        all.logins.retain(|known| known.url != url);
        all.save()
    }

    fn save(&self) -> Result<(), Failure> {
        let path = storage::directory()?.join(FILE);
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| Failure::internal(&error))?;
        storage::write_private(&path, &bytes).map_err(|error| {
            let shown = path.display();
            Failure::usage(
                format!("the login cannot be stored in `{shown}`: {error}"),
                format!("ls -l {shown}"),
            )
        })
    }
}

impl Login {
    /// Returns the authorization of requests to a server that nobody has logged in to.
    pub(super) fn new_oauth(consent: impl Consent) -> Result<OAuth, Failure> {
        Ok(OAuth::login(APPLICATION, consent).store(credentials()?))
    }

    /// Returns the authorization of requests, which asks the user in this way if the stored tokens cannot be used any more.
    pub(crate) fn oauth(&self, consent: impl Consent) -> Result<OAuth, Failure> {
        let registered = self.client_id.as_ref().map(|id| Registered::new(&self.issuer, id));
        let secret = self.secret_env.as_ref().and_then(|name| env::var(name).ok());
        let registered = match (registered, secret) {
            (Some(client), Some(secret)) => Some(client.secret(secret)),
            (client, _) => client,
        };
        let oauth = match (self.grant, registered) {
            // Without its secret, the tokens are used as long as they last.
            (Grant::ClientCredentials, Some(client))
                if self.secret_env.as_ref().is_some_and(|name| env::var_os(name).is_some()) =>
            {
                OAuth::machine(client)
            }
            (_, Some(client)) => OAuth::login(APPLICATION, consent).registered(client),
            (_, None) => OAuth::login(APPLICATION, consent),
        };
        Ok(oauth.store(credentials()?))
    }

    /// Returns the stored tokens' description, if there are tokens.
    pub(crate) async fn stored(&self) -> Result<Option<StoredLogin>, Failure> {
        let all = credentials()?.logins().await.map_err(|error| unusable(&error))?;
        Ok(all.into_iter().find(|login| login.issuer == self.issuer && login.resource == self.resource))
    }
}

/// Returns the failure of a file of tokens that cannot be read or written.
pub(crate) fn unusable(error: &Error) -> Failure {
    let message = match error {
        Error::Io(error) => error.to_string(),
        error => error.to_string(),
    };
    let path = storage::path().map(|path| path.join(CREDENTIALS)).unwrap_or_default();
    Failure::usage(message, format!("ls -l {}", path.display()))
}

/// Returns the file of tokens.
pub(crate) fn credentials() -> Result<FileStore, Failure> {
    Ok(FileStore::at(storage::directory()?.join(CREDENTIALS)))
}

/// Returns the file of the tokens that principals of a gateway have for its targets.
pub(crate) fn principal_credentials() -> Result<FileStore, Failure> {
    Ok(FileStore::at(storage::directory()?.join(PRINCIPALS)).max_issuers(MAX_PRINCIPALS))
}

/// Returns the login whose tokens are for this server: for its URL, or for a part of it that contains the URL.
pub(crate) fn of_server(stored: Vec<StoredLogin>, url: &str) -> Option<StoredLogin> {
    let contains = |resource: &str| {
        let rest = url.strip_prefix(resource.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    stored.into_iter().filter(|login| contains(&login.resource)).max_by_key(|login| login.resource.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_for_the_server_that_its_resource_contains() {
        let stored = |resources: &[&str]| -> Vec<StoredLogin> {
            let json: Vec<_> =
                resources.iter().map(|resource| format!(r#""{resource}": {{"access": "x"}}"#)).collect();
            let text = format!(r#"{{"https://i": {{"tokens": {{{}}}}}}}"#, json.join(","));
            let path = std::env::temp_dir().join(format!("pintle-logins-{}.json", std::process::id()));
            std::fs::write(&path, text).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let logins = runtime.block_on(pintle_oauth::client::FileStore::at(&path).logins()).unwrap();
            std::fs::remove_file(path).unwrap();
            logins
        };
        let all = stored(&["https://e.com", "https://e.com/mcp", "https://e.com/m", "https://other.com/mcp"]);
        let found = |url| of_server(all.clone(), url).map(|login| login.resource);
        assert_eq!(found("https://e.com/mcp").as_deref(), Some("https://e.com/mcp"));
        assert_eq!(found("https://e.com/mcp/x").as_deref(), Some("https://e.com/mcp"));
        assert_eq!(found("https://e.com/x").as_deref(), Some("https://e.com"));
        assert_eq!(found("https://e.com.evil/mcp"), None);
    }
}
