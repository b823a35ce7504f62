//! Resources: one that changes, a list that takes two pages, and a family with completed names.

use pintle::{
    Server,
    server::{RequestError, resource, template},
};
use serde_json::Value;

use super::{Harbour, PORTS, tides};

/// The boats that lie here.
const BOATS: [&str; 5] = ["Auk", "Eider", "Gannet", "Puffin", "Tern"];

/// What [`post`](super::changing) changes.
pub(super) const NOTICE: &str = "harbour://notice";

pub(super) fn add(server: Server, harbour: &Harbour) -> Server {
    let harbour = harbour.clone();
    let notice = resource(NOTICE, "notice", move |_| {
        let notice = harbour.notice();
        async move { Ok(notice) }
    });
    let boats = BOATS.iter().map(|boat| {
        let uri = format!("harbour://boats/{}", boat.to_lowercase());
        resource(uri, *boat, move |_| async move { Ok(format!("The {boat}: one mast, two bunks.")) })
    });
    let tides = template("harbour://tides/{port}/{hour}", "tide", |_, vars| async move {
        // A port is what its JSON says.
        let port = serde_json::from_value(Value::from(vars.get("port").unwrap_or_default()));
        let hour = vars.get("hour").unwrap_or_default().parse();
        match (port, hour) {
            (Ok(port), Ok(hour)) => Ok(tides::line(port, hour)),
            _ => Err(RequestError::not_found()),
        }
    });
    server
        .resource(notice.description("What the harbour master says.").mime_type("text/plain"))
        .resources(boats)
        .template(tides.description("The tide of a port.").complete("port", |partial| async move {
            PORTS.into_iter().filter(|port| port.starts_with(&partial.value)).collect::<Vec<_>>()
        }))
}
