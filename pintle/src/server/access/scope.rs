use http::Extensions;
use pintle_proto::Peer;

use crate::server::Principal;

/// Who asks, for decisions that no handler makes: what is shown, what completes.
///
/// ```
/// use pintle::server::{Entry, Server, tool};
///
/// let server = Server::new("vault", "1.0.0")
///     .tool(tool("look", || async { "gold" }))
///     .tool(tool("take", || async { "taken" }))
///     .filter(|scope, entry| match entry {
///         Entry::Tool(tool) => tool.name != "take" || scope.principal == Some("ann"),
///         _ => true,
///     });
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The client, as far as this request says.
    pub peer: &'a Peer,
    /// On whose behalf, if somebody has checked that.
    pub principal: Option<&'a str>,
    /// What layers below have left: headers, tokens, the peer's address.
    pub extensions: &'a Extensions,
}

impl<'a> Scope<'a> {
    /// Whether the caller is local, anonymous or somebody by name.
    pub fn identity(&self) -> Principal<'a> {
        Principal::of(self.principal, self.extensions)
    }
}

/// One entry of the catalogue, for a filter to judge.
#[expect(clippy::exhaustive_enums, reason = "a filter must judge each")]
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A tool.
    Tool(&'a pintle_types::schema::Tool),
    /// A prompt.
    Prompt(&'a pintle_types::schema::Prompt),
    /// A resource.
    Resource(&'a pintle_types::schema::Resource),
    /// A template of resources.
    Template(&'a pintle_types::schema::ResourceTemplate),
}

/// Says who sees what. What is not seen cannot be called, read or completed either.
pub(crate) type Filter = dyn Fn(&Scope<'_>, Entry<'_>) -> bool + Send + Sync;
