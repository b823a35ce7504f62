use pintle_types::schema::{ClientCapabilities, Implementation, LoggingLevel};

use crate::Revision;

/// Who is calling, as far as *this* request is concerned.
///
/// A session copies it from the handshake; a stateless request brings its own. Nothing downstream can tell, and two
/// requests on one connection may have different ones.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it speaks.
    pub revision: Revision,
    /// What it calls itself. Never a reason to trust it.
    pub info: Option<Implementation>,
    /// What it can be asked for.
    pub capabilities: ClientCapabilities,
    /// The least severe log message that it wants; `None` if it wants none.
    pub log_level: Option<LoggingLevel>,
}
