use std::{fmt, sync::Arc};

use pintle::{
    server::{Cx, FromCall, Outcome},
    types::{JsonObject, RpcError},
};
use serde_json::Value;

use super::scope::Scopes;

/// The principal of a request: the user or program that its token was issued to. A handler takes it as an argument.
///
/// ```
/// use pintle::server::tool;
/// use pintle_oauth::server::Principal;
///
/// let whoami = tool("whoami", |who: Principal| async move {
///     format!("{}, by {}", who.subject(), who.client_id().unwrap_or("an unknown client"))
/// });
/// ```
///
/// If the server also accepts calls without a token, for
/// example over stdio, take `Option<Extension<Principal>>`.
#[derive(Clone)]
pub struct Principal(Arc<PrincipalInner>);

#[derive(Clone)]
struct PrincipalInner {
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
    /// Creates the principal that an issuer knows by this subject, for verifiers of your own and for tests.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self(Arc::new(PrincipalInner {
            issuer: issuer.into(),
            subject: subject.into(),
            client_id: None,
            scopes: Scopes::default(),
            expires_at: None,
            claims: JsonObject::new(),
            bound_to: None,
        }))
    }

    /// Sets the client that the principal uses.
    #[must_use]
    pub fn client(self, client_id: impl Into<String>) -> Self {
        self.with(|known| known.client_id = Some(client_id.into()))
    }

    /// Adds granted scopes.
    #[must_use]
    pub fn granted<T: Into<String>>(self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.with(|known| known.scopes = Scopes::of(scopes))
    }

    /// Sets when the token expires, in seconds since 1970.
    #[must_use]
    pub fn until(self, expires_at: u64) -> Self {
        self.with(|known| known.expires_at = Some(expires_at))
    }

    /// Sets the other claims of the token.
    #[must_use]
    pub fn claims(self, claims: JsonObject) -> Self {
        self.with(|known| known.claims = claims)
    }

    /// Binds the token to the key with this thumbprint (RFC 9449). The proofs are checked by [`Protected`](super::Protected).
    #[must_use]
    pub fn bound_to(self, thumbprint: impl Into<String>) -> Self {
        self.with(|known| known.bound_to = Some(thumbprint.into()))
    }

    /// Returns the issuer. Subjects of two issuers are unrelated.
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// Returns the user, or the program itself if there is no user.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Returns the client that the user uses.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// Returns the granted scopes of the token.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter()
    }

    /// Whether this scope was granted by name.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.has(scope)
    }

    /// Returns when the token expires, in seconds since 1970.
    pub fn expires_at(&self) -> Option<u64> {
        self.0.expires_at
    }

    /// Returns another claim of the token.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.0.claims.get(name)
    }

    pub(super) fn thumbprint(&self) -> Option<&str> {
        self.0.bound_to.as_deref()
    }

    pub(super) fn all_scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// Returns the key that sessions, states and subscriptions are bound to: unique for an issuer, subject and client.
    pub(super) fn key(&self) -> String {
        // As JSON, in which two different lists never look the same.
        Value::from_iter([Some(self.issuer()), Some(self.subject()), self.client_id()]).to_string()
    }

    fn with(mut self, change: impl FnOnce(&mut PrincipalInner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl FromCall for Principal {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.extensions().get::<Self>().cloned().ok_or_else(|| {
            tracing::error!(
                method = cx.method(),
                "a handler takes a `Principal`, but the request was not authenticated; serve the server with `Protected`"
            );
            Outcome::Failed(RpcError::internal("the server is misconfigured; see its log"))
        })
    }
}

/// Prints names and scopes. The other claims do not belong in logs.
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
    fn a_scope_is_granted_by_its_whole_name() {
        let ann = Principal::new("https://a", "ann").granted(["read", "write"]);
        let has = ["read", "write", "rea", "", "read write"].map(|scope| ann.has_scope(scope));
        assert_eq!(has, [true, true, false, false, false]);
    }

    #[test]
    fn claims_are_not_printed() {
        let claims = JsonObject::from_iter([("email".to_owned(), Value::from("ann@example.com"))]);
        let shown = format!("{:?}", Principal::new("https://a", "ann").claims(claims).granted(["x", "y"]));
        assert!(shown.contains("x y") && !shown.contains("email"), "{shown}");
    }
}
