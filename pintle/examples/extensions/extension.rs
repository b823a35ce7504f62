//! An extension of the protocol, both roles: presence of people in rooms, as a method and a notification of its own.
//!
//! Clients that do not declare the extension are served as before, and do not see it. Types and names that both sides need are
//! in one place; a crate would be the usual one.
//!
//! ```sh
//! cargo run --example extension --features client,server
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::{
    Client, Connection, Server,
    client::Event,
    server::{Cx, Installation, Notice, ProtocolExtension, RequestError, method},
    types::JsonObject,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What both sides agree on.
mod wire {
    use super::{Deserialize, Serialize};

    /// The identifier: a domain that you own, reversed, and a name.
    pub(crate) const EXTENSION: &str = "com.example/presence";
    pub(crate) const ENTER: &str = "presence/enter";
    pub(crate) const ENTERED: &str = "notifications/presence/entered";
    /// The member of a subscription: a list of rooms.
    pub(crate) const ROOMS: &str = "presenceRooms";

    #[derive(Deserialize, Serialize)]
    pub(crate) struct Enter {
        pub(crate) room: String,
        pub(crate) name: String,
    }

    /// The parameters of the notification.
    #[derive(Deserialize, Serialize)]
    pub(crate) struct Entered {
        pub(crate) room: String,
        pub(crate) name: String,
    }

    /// The result of a method is an object.
    #[derive(Deserialize, Serialize)]
    pub(crate) struct Present {
        pub(crate) names: Vec<String>,
    }
}

/// The server's side.
#[derive(Default)]
struct Presence {
    rooms: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

impl ProtocolExtension for Presence {
    fn name(&self) -> &str {
        wire::EXTENSION
    }

    /// What clients read in the server's capabilities.
    fn settings(&self) -> JsonObject {
        JsonObject::from_iter([("maxNames".to_owned(), json!(100))])
    }

    fn install(self, presence: Installation) -> Installation {
        let rooms = self.rooms;
        presence
            .method(method(wire::ENTER, move |cx: Cx, wire::Enter { room, name }| {
                let rooms = rooms.clone();
                async move {
                    let names = {
                        let mut rooms = rooms.lock().unwrap_or_else(PoisonError::into_inner);
                        let names = rooms.entry(room.clone()).or_default();
                        if names.len() == 100 {
                            return Err(RequestError::bad_request(format!(
                                "`{room}` is full: enter another room"
                            )));
                        }
                        names.push(name.clone());
                        names.clone()
                    };
                    // For those who have subscribed to this room.
                    let params = json!(wire::Entered { room: room.clone(), name });
                    let notice = Notice::new(wire::ROOMS, wire::ENTERED, params);
                    cx.server().tell(
                        notice.to(move |rooms| {
                            rooms.as_array().is_some_and(|rooms| rooms.contains(&json!(room)))
                        }),
                    );
                    Ok(wire::Present { names })
                }
            }))
            .listens(wire::ROOMS)
            // What a subscription gets: the rooms it asks for, or in a session, which cannot ask, the hall.
            .grants(|_member, wanted, _principal| match wanted.is_array() {
                true => Some(wanted.clone()),
                false => Some(json!(["hall"])),
            })
    }
}

/// The client's side: methods on a connection, as if they were built in.
trait PresenceConnection {
    async fn enter(&self, room: &str, name: &str) -> pintle::Result<wire::Present>;
}

impl PresenceConnection for Connection {
    async fn enter(&self, room: &str, name: &str) -> pintle::Result<wire::Present> {
        let params = wire::Enter { room: room.into(), name: name.into() };
        self.request::<_, wire::Present>(wire::ENTER, params).await
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("office", "1.0.0").with(Presence::default());

    // Declaring the extension is what makes it available.
    let client = Client::new("demo", "0.1.0").extension(wire::EXTENSION, JsonObject::new());
    let ann = client.connect(server.in_process()?).await?;
    let settings = ann.capabilities().extensions.and_then(|mut known| known.remove(wire::EXTENSION));
    println!("the server has the extension: {}", settings.unwrap_or_default());
    let mut changes = ann.changes().await?;
    ann.subscribe_extension(wire::ROOMS, json!(["hall"])).await?;

    let ben = client.connect(server.in_process()?).await?;
    println!("in the kitchen: {}", ben.enter("kitchen", "Ben").await?.names.join(", "));
    println!("in the hall: {}", ben.enter("hall", "Ben").await?.names.join(", "));

    // Ann is notified of the hall only.
    while let Some(event) = changes.next().await {
        if let Event::Notification(notification) = event
            && notification.method == wire::ENTERED
            && let Some(params) = notification.params
        {
            let entered: wire::Entered = serde_json::from_str(params.as_str())?;
            println!("Ann reads: {} entered the {}", entered.name, entered.room);
            break;
        }
    }

    // A client that has not declared it is refused.
    let stranger = Client::new("stranger", "0.1.0").connect(server.in_process()?).await?;
    match stranger.enter("hall", "Eve").await {
        Ok(_) => println!("Eve is in the hall"),
        Err(error) => println!("{error}"),
    }
    Ok(())
}
