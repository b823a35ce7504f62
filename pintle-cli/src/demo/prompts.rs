//! A prompt with an enum argument, which is completed automatically.

use pintle::Server;

use super::Port;

pub(super) fn add(server: Server) -> Server {
    server.routes(pintle::routes![passage])
}

/// Plan a passage.
#[pintle::prompt]
async fn passage(
    /// The destination.
    to: Port,
) -> String {
    format!("Plan a passage to {}. Mind the tide.", to.name())
}
