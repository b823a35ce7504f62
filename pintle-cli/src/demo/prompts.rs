//! A prompt whose argument is completed, because it is an enum.

use pintle::Server;

use super::Port;

pub(super) fn add(server: Server) -> Server {
    server.routes(pintle::routes![passage])
}

/// Plan a passage.
#[pintle::prompt]
async fn passage(
    /// Where to.
    to: Port,
) -> String {
    format!("Plan a passage to {}. Mind the tide.", to.name())
}
