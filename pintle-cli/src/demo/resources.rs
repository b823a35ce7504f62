//! Resources: one that changes, a list that takes two pages, and a family with completed names.

use pintle::{
    Server,
    server::{State, resource},
};

use super::{Harbour, Port, tides};

/// The boats that lie here.
const BOATS: [&str; 5] = ["Auk", "Eider", "Gannet", "Puffin", "Tern"];

/// What [`post`](super::changing) changes.
pub(super) const NOTICE: &str = "harbour://notice";

pub(super) fn add(server: Server) -> Server {
    let boats = BOATS.iter().map(|boat| {
        let uri = format!("harbour://boats/{}", boat.to_lowercase());
        resource(uri, *boat, move || async move { format!("The {boat}: one mast, two bunks.") })
    });
    server.routes(pintle::routes![notice, tide]).resources(boats)
}

/// What the harbour master says.
#[pintle::resource("harbour://notice", mime_type = "text/plain")]
async fn notice(State(harbour): State<Harbour>) -> String {
    harbour.notice()
}

/// The tide of a port.
#[pintle::resource("harbour://tides/{port}/{hour}")]
async fn tide(port: Port, #[arg(maximum = 23)] hour: u8) -> String {
    tides::line(port, hour)
}
