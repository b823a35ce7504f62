//! Resources: one that changes, a list of two pages, and a template with completion.

use pintle::{
    Server,
    server::{State, resource},
};

use super::{Harbour, Port, tides};

/// The boats in the harbour.
const BOATS: [&str; 5] = ["Auk", "Eider", "Gannet", "Puffin", "Tern"];

/// The URI of the notice, which [`post`](super::changing) changes.
pub(super) const NOTICE: &str = "harbour://notice";

pub(super) fn add(server: Server) -> Server {
    let boats = BOATS.iter().map(|boat| {
        let uri = format!("harbour://boats/{}", boat.to_lowercase());
        resource(uri, *boat, move || async move { format!("The {boat}: one mast, two bunks.") })
            .description(format!("The boat {boat}."))
    });
    server.routes(pintle::routes![notice, tide]).resources(boats)
}

/// The notice of the harbour master.
#[pintle::resource("harbour://notice", mime_type = "text/plain")]
async fn notice(State(harbour): State<Harbour>) -> String {
    harbour.notice()
}

/// The tide of a port.
#[pintle::resource("harbour://tides/{port}/{hour}")]
async fn tide(port: Port, #[arg(maximum = 23)] hour: u8) -> String {
    tides::line(port, hour)
}
