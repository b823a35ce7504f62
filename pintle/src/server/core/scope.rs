use std::{fmt, sync::Weak};

use http::Extensions;
use pintle_proto::Peer;

use super::sessions::LiveSession;
use crate::server::{Principal, SessionHandle};

/// The caller of a request, for functions that run without a handler: filters and completions.
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
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The client, as described by this request.
    pub peer: &'a Peer,
    /// The name of the principal, if the caller is authenticated.
    pub principal: Option<&'a str>,
    /// The extensions that layers have added, such as headers, tokens and the client's address.
    pub extensions: &'a Extensions,
    /// The session of the request, if it has one.
    pub(crate) session: Option<&'a Weak<dyn LiveSession>>,
    /// Whether the server that is asked is mounted in that of the connection: the tools of a session are none of its own.
    pub(crate) is_mounted: bool,
}

impl<'a> Scope<'a> {
    /// Creates the scope of a caller without a session.
    pub(crate) fn new(peer: &'a Peer, principal: Option<&'a str>, extensions: &'a Extensions) -> Self {
        Self { peer, principal, extensions, session: None, is_mounted: false }
    }

    /// Returns the session of the request, if it has one.
    pub fn session(&self) -> Option<SessionHandle> {
        self.session.cloned().map(SessionHandle::new)
    }

    /// Returns the scope of the caller in a mounted server.
    pub(crate) fn mounted(self) -> Self {
        Self { is_mounted: true, ..self }
    }

    /// Returns whether the caller is local, anonymous or a named principal.
    pub fn identity(&self) -> Principal<'a> {
        Principal::of(self.principal, self.extensions)
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, principal, extensions, .. } = self;
        let mut scope = f.debug_struct("Scope");
        scope.field("peer", peer).field("principal", principal).field("extensions", extensions);
        scope.field("session", &self.session().and_then(|session| session.id())).finish_non_exhaustive()
    }
}

/// An entry that a gate or a filter decides about: one of the catalogue, or a method that the protocol does not define.
#[expect(clippy::exhaustive_enums, reason = "a filter must handle each")]
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A tool.
    Tool(&'a pintle_types::schema::Tool),
    /// A prompt.
    Prompt(&'a pintle_types::schema::Prompt),
    /// A resource.
    Resource(&'a pintle_types::schema::Resource),
    /// A resource template.
    Template(&'a pintle_types::schema::ResourceTemplate),
    /// A method of the [server](crate::server::Server::method), of an extension, or of a provider that handles any method, by its name.
    Method(&'a str),
}

impl<'a> Entry<'a> {
    /// Returns the name of a tool, prompt or method, the URI of a resource, or the URI template.
    pub fn name(&self) -> &'a str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Prompt(prompt) => &prompt.name,
            Self::Resource(resource) => &resource.uri,
            Self::Template(template) => &template.uri_template,
            Self::Method(name) => name,
        }
    }
}
