use std::time::Duration;

use serde_json::{Map, Value};

/// The claims of a token for [`AuthorizationServer::token`](super::AuthorizationServer::token).
///
/// ```
/// use pintle_oauth::testing::{AuthorizationServer, Claims};
///
/// let login = AuthorizationServer::new("https://login.test");
/// let token = login.token(&Claims::new("https://mcp.test/mcp").subject("alice").scopes(["notes:read"]));
/// ```
#[derive(Clone, Debug)]
pub struct Claims {
    pub(super) audience: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) client: String,
    pub(super) scopes: String,
    pub(super) lifetime: Option<Duration>,
    pub(super) more: Map<String, Value>,
}

impl Claims {
    /// Creates claims with this audience.
    pub fn new(audience: impl Into<String>) -> Self {
        Self {
            audience: Some(audience.into()),
            subject: None,
            client: "client".into(),
            scopes: String::new(),
            lifetime: None,
            more: Map::new(),
        }
    }

    /// Sets the subject. The default is the user of the authorization server.
    #[must_use]
    pub fn subject(mut self, name: impl Into<String>) -> Self {
        self.subject = Some(name.into());
        self
    }

    /// Sets the client. The default is `client`.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>) -> Self {
        self.client = id.into();
        self
    }

    /// Sets the granted scopes.
    #[must_use]
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<S> = scopes.into_iter().collect();
        self.scopes = scopes.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
        self
    }

    /// Sets the lifetime. The default is that of the authorization server.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Sets any claim. `null` removes it.
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }
}

/// Changes members of an object. `null` removes one.
pub(super) fn change(object: &mut Value, members: impl IntoIterator<Item = (String, Value)>) {
    let Some(object) = object.as_object_mut() else { return };
    for (name, value) in members {
        if value.is_null() {
            object.remove(&name);
        } else {
            object.insert(name, value);
        }
    }
}
