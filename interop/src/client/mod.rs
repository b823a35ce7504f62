//! The cells of the matrix, as Pintle's client runs them.

mod cells;
mod waiting;

use std::{future::Future, pin::Pin, time::Duration};

use pintle::{
    Client, Connection, Timeouts,
    client::{Answer, Mode, http::Http},
    transport::{Child, Stderr},
    types::schema::{ContentBlock, CreateMessageResult},
};
use serde_json::json;

use crate::Wrong;

pub use cells::CELLS;

/// One question to a server.
#[expect(clippy::exhaustive_structs, reason = "not published")]
#[derive(Debug)]
pub struct Cell {
    /// The column.
    pub name: &'static str,
    /// Asks, and says in short what came back if it was right.
    pub ask: Ask,
}

/// Asks a server.
pub type Ask = for<'a> fn(&'a Connection) -> Pin<Box<dyn Future<Output = Result<String, Wrong>> + 'a>>;

/// For the first answer of a server that has just been started: what is seen here is not how fast it starts.
const START: Duration = Duration::from_secs(20);

/// A client with everything that servers ask for.
pub fn client(mode: Mode) -> Client {
    let mut timeouts = Timeouts::default();
    timeouts.probe = START;
    timeouts.initialize = START;
    Client::new("pintle-interop", env!("CARGO_PKG_VERSION"))
        .mode(mode)
        .timeouts(timeouts)
        .on_elicit(|question| async move {
            match question.message.as_str() {
                "no" => Answer::Decline,
                _ => Answer::accept(json!({"copies": 2})),
            }
        })
        .on_sample(|_| async { CreateMessageResult::new("none", ContentBlock::text("pong")) })
}

/// Connects it to a URL, or to a program.
///
/// # Errors
///
/// There is no such server, or it does not speak that era.
pub async fn connect(mode: Mode, place: &[String]) -> Result<Connection, Wrong> {
    match place {
        [url] if url.starts_with("http") => Ok(client(mode).connect(Http::new(url)?).await?),
        [program, args @ ..] => {
            let child = Child::command(program).args(args).stderr(Stderr::Inherit).spawn();
            Ok(client(mode).connect(child.map_err(pintle::Error::from)?).await?)
        }
        [] => Err(Wrong::new("a URL or a program is missing")),
    }
}
