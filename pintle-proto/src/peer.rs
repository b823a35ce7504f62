//! The other side of a request. Revision, capabilities, identity and log level travel with the request, even where a handshake stated them for
//! the whole connection.

use pintle_types::schema::{ClientCapabilities, Implementation, LoggingLevel};

use crate::Revision;

/// The client, as *this* request describes it.
///
/// In a session the description is that of the handshake; a stateless request carries its own. Handlers see no
/// difference, and two requests on one connection may have different peers.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Peer {
    /// The protocol revision of the client.
    pub revision: Revision,
    /// The client's name and version, as it reports them. They are not authenticated.
    pub info: Option<Implementation>,
    /// The capabilities that the client declares.
    pub capabilities: ClientCapabilities,
    /// The minimum level of the log messages that the client wants; `None` if it wants none.
    pub log_level: Option<LoggingLevel>,
}

impl Peer {
    /// Creates a client of which nothing but its revision is known.
    pub fn new(revision: Revision) -> Self {
        Self { revision, info: None, capabilities: ClientCapabilities::default(), log_level: None }
    }
}
