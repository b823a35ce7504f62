//! A prompt whose arguments are completed.

use pintle::{Server, server::prompt};

use super::PORTS;

pub(super) fn add(server: Server) -> Server {
    let passage = prompt("passage", |_, arguments| async move {
        let to = arguments.get("to").cloned().unwrap_or_default();
        Ok(format!("Plan a passage to {to}. Mind the tide."))
    });
    server.prompt(
        passage.description("Plan a passage.").argument("to", "Where to.").argument_values("to", PORTS),
    )
}
