use http::Extensions;
use pintle_proto::Peer;

use crate::server::Principal;

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
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The client, as described by this request.
    pub peer: &'a Peer,
    /// The name of the principal, if the caller is authenticated.
    pub principal: Option<&'a str>,
    /// The extensions that layers have added, such as headers, tokens and the client's address.
    pub extensions: &'a Extensions,
}

impl<'a> Scope<'a> {
    /// Returns whether the caller is local, anonymous or a named principal.
    pub fn identity(&self) -> Principal<'a> {
        Principal::of(self.principal, self.extensions)
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
