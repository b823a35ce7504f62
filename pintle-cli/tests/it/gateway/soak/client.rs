//! A client that makes calls of all kinds, and knows what each has to return.

use std::{sync::Arc, time::Duration};

use pintle::{
    Client, Connection, Timeouts,
    client::{Mode, http::Http},
};
use serde_json::json;
use tokio::time::timeout;

use super::backends::HONEST;
use crate::bridge::chaos::Random;

/// Only a call that is never answered takes so long, also on a machine with much else to do: the timeouts of the client are longer.
const LIMIT: Duration = Duration::from_secs(300);
/// The principals of the clients, which are the names of variables with their tokens.
pub(super) const PRINCIPALS: [&str; 3] = ["ALICE", "BOB", "CAROL"];

/// One of the clients, and what it has seen.
pub(super) struct SoakClient {
    /// The names of tools of the hostile backend.
    hostile: Arc<[String]>,
    number: usize,
    principal: &'static str,
    mode: Mode,
    pub(super) connection: Connection,
}

impl SoakClient {
    pub(super) async fn connect(number: usize, url: &str, hostile: Arc<[String]>) -> Self {
        let principal = PRINCIPALS[number % 3];
        let mode = if number.is_multiple_of(2) { Mode::Modern } else { Mode::Legacy };
        let http = Http::new(url).unwrap().bearer(principal.to_lowercase()).unwrap();
        let mut timeouts = Timeouts::default();
        (timeouts.probe, timeouts.initialize, timeouts.call) = (2 * LIMIT, 2 * LIMIT, 2 * LIMIT);
        let client = Client::new("host", "1.0.0").mode(mode).timeouts(timeouts);
        let connection = client.connect(http).await.unwrap();
        Self { hostile, number, principal, mode, connection }
    }

    /// Makes a call to a backend that answers at once.
    pub(super) async fn call_quick(&self, number: usize) {
        let backend = ["demo", "program", "modern", "session", "oldest"][number % 5];
        let (name, arguments) = match backend {
            "demo" | "program" => ("tide", json!({"port": "bergen", "hour": 4})),
            _ => ("echo", json!({"text": "hello"})),
        };
        let called = timeout(LIMIT, self.connection.call_tool(format!("{backend}_{name}"), arguments)).await;
        called.unwrap_or_else(|_| panic!("`{backend}` does not answer")).unwrap();
    }

    /// Makes a call, which has to be answered.
    pub(super) async fn call(&self, random: &mut Random) {
        let Self { hostile, number, principal, mode, connection } = self;
        let text = format!("{principal}-{number}-{}", random.below(1_000_000));
        let tide = || json!({"port": "bergen", "hour": 4});
        let backend = HONEST[usize::try_from(random.below(HONEST.len() as u64)).unwrap()];
        let (name, arguments) = match (random.below(12), backend) {
            (0, _) => ("crashing_tide".to_owned(), tide()),
            (1, _) => ("sometimes_tide".to_owned(), tide()),
            (2, _) => ("broken_echo".to_owned(), json!({"text": text})),
            (3, _) => ("dead_echo".to_owned(), json!({"text": text})),
            (4, _) => ("session_keep".to_owned(), json!({"text": text})),
            (5, _) if number.is_multiple_of(5) => {
                let at = usize::try_from(random.below(hostile.len() as u64)).unwrap();
                (hostile[at].clone(), json!({"text": text}))
            }
            (_, "demo" | "program") => (format!("{backend}_tide"), tide()),
            (_, backend) => (format!("{backend}_echo"), json!({"text": text})),
        };
        let answered = timeout(LIMIT, connection.call_tool(&*name, arguments)).await;
        let answered = answered.unwrap_or_else(|_| panic!("client {number}: `{name}` is not answered"));
        match (name.as_str(), answered) {
            ("crashing_tide" | "sometimes_tide", _) => {}
            (name, _) if name.starts_with("hostile_") => {}
            ("broken_echo" | "dead_echo", answered) => {
                let error = answered.unwrap_err().to_string();
                assert!(error.contains("`broken`") || error.contains("`dead`"), "{error}");
            }
            ("session_keep", answered) => {
                let before = answered.unwrap_or_else(|error| panic!("{mode:?} {number}: {error}")).text();
                // A session is that of one client, or of those of a principal that have none.
                let own = match mode {
                    Mode::Legacy => format!("{principal}-{number}-"),
                    _ => format!("{principal}-"),
                };
                assert!(before.is_empty() || before.starts_with(&own), "{own} sees {before}");
            }
            (name, answered) => {
                let result =
                    answered.unwrap_or_else(|error| panic!("client {number}: `{name}`: {error}")).text();
                assert!(result == text || name.ends_with("_tide"), "{name}: {result} is not {text}");
            }
        }
    }
}
