use std::{fmt, sync::Arc};

use pintle::{
    server::{Cx, FromCall, Outcome},
    types::{JsonObject, RpcError},
};
use serde_json::Value;

use super::scope::Scopes;

/// On whose behalf a request comes, as its token says. A handler takes it as an argument.
///
/// ```
/// use pintle::server::tool;
/// use pintle_oauth::server::Principal;
///
/// let whoami = tool("whoami", |who: Principal| async move {
///     format!("{}, by {}", who.subject(), who.client_id().unwrap_or("nobody's program"))
/// });
/// ```
///
/// With `#[pintle::tool]` such a parameter carries `#[extract]`. Where a server is also served without a token, on a pipe
/// say, take `Option<Extension<Principal>>`.
#[derive(Clone)]
pub struct Principal(Arc<Known>);

#[derive(Clone)]
struct Known {
    issuer: String,
    subject: String,
    client_id: Option<String>,
    scopes: Scopes,
    expires_at: Option<u64>,
    claims: JsonObject,
    /// The thumbprint of the key that the token is bound to.
    bound_to: Option<String>,
}

impl Principal {
    /// Somebody whom an issuer knows by this name. For verifiers of your own, and for tests.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self(Arc::new(Known {
            issuer: issuer.into(),
            subject: subject.into(),
            client_id: None,
            scopes: Scopes::default(),
            expires_at: None,
            claims: JsonObject::new(),
            bound_to: None,
        }))
    }

    /// Through this client.
    #[must_use]
    pub fn client(self, client_id: impl Into<String>) -> Self {
        self.with(|known| known.client_id = Some(client_id.into()))
    }

    /// Who was granted these.
    #[must_use]
    pub fn granted<T: Into<String>>(self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.with(|known| known.scopes = Scopes::of(scopes))
    }

    /// Until then, in seconds since 1970.
    #[must_use]
    pub fn until(self, expires_at: u64) -> Self {
        self.with(|known| known.expires_at = Some(expires_at))
    }

    /// Of whom this is known too.
    #[must_use]
    pub fn claims(self, claims: JsonObject) -> Self {
        self.with(|known| known.claims = claims)
    }

    /// Whose token is worth something only with a proof by the key of this thumbprint (RFC 9449): the proof is checked
    /// for you.
    #[must_use]
    pub fn bound_to(self, thumbprint: impl Into<String>) -> Self {
        self.with(|known| known.bound_to = Some(thumbprint.into()))
    }

    /// Who says so. Two issuers may mean two people by the same subject.
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// The user, or the program itself where there is none.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The program that the user uses.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// What was granted, as the token says.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter()
    }

    /// Whether this was granted, by this name.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.has(scope)
    }

    /// When the token ends, in seconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        self.0.expires_at
    }

    /// One of the other things that the issuer says.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.0.claims.get(name)
    }

    pub(super) fn thumbprint(&self) -> Option<&str> {
        self.0.bound_to.as_deref()
    }

    pub(super) fn all_scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// What sessions, states and subscriptions are bound to: the same for the same user of the same issuer with the same
    /// client, and for no other.
    pub(super) fn key(&self) -> String {
        // As JSON, because no two lists of texts are printed alike.
        Value::from_iter([Some(self.issuer()), Some(self.subject()), self.client_id()]).to_string()
    }

    fn with(mut self, change: impl FnOnce(&mut Known)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl FromCall for Principal {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.extensions().get::<Self>().cloned().ok_or_else(|| {
            tracing::error!(
                method = cx.method(),
                "a handler wants a `Principal`, and the call came by a way that checks no tokens"
            );
            Outcome::Failed(RpcError::internal("the server is not set up: see its log"))
        })
    }
}

/// Names and scopes. What else the issuer says is not for logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("issuer", &self.0.issuer)
            .field("subject", &self.0.subject)
            .field("client_id", &self.0.client_id)
            .field("scopes", &self.0.scopes.to_string())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_have_the_same_key() {
        let all = [
            Principal::new("https://a", "ann"),
            Principal::new("https://b", "ann"),
            Principal::new("https://a", "bob"),
            Principal::new("https://a", "ann").client("c"),
            Principal::new("https://a\",\"ann", ""),
        ];
        let keys: std::collections::BTreeSet<_> = all.iter().map(Principal::key).collect();
        assert_eq!(keys.len(), all.len());
        assert_eq!(all[3].key(), r#"["https://a","ann","c"]"#);
    }

    #[test]
    fn claims_are_not_printed() {
        let claims = JsonObject::from_iter([("email".to_owned(), Value::from("ann@example.com"))]);
        let shown = format!("{:?}", Principal::new("https://a", "ann").claims(claims).granted(["x", "y"]));
        assert!(shown.contains("x y") && !shown.contains("email"), "{shown}");
    }
}
