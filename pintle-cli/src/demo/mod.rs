//! The demo server: a small harbour with one of each feature.

mod asking;
mod changing;
mod media;
mod prompts;
mod resources;
mod sailing;
mod tides;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{Server, server::StateKeys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shared state of the harbour. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Harbour(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notice: Mutex<Option<String>>,
    berths: AtomicUsize,
    asked: AtomicUsize,
    weighed: AtomicUsize,
}

/// A destination.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Port {
    Bergen,
    Esbjerg,
    Lerwick,
}

impl Port {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bergen => "bergen",
            Self::Esbjerg => "esbjerg",
            Self::Lerwick => "lerwick",
        }
    }
}

/// Creates the server.
pub fn server(harbour: &Harbour) -> Server {
    let server = Server::new("harbour", "1.0.0")
        .title("A small harbour")
        .instructions("Ask for the tide before you sail.")
        .with_state(harbour.clone())
        // Known to everyone: a call of the demo can go on in another process, and its state protects nothing.
        .state_keys(StateKeys::from([7; 32]))
        // Small enough for every list to have a second page.
        .page_size(5)
        .logging();
    let server = tides::add(server);
    let server = media::add(server);
    let server = sailing::add(server);
    let server = asking::add(server);
    let server = resources::add(server);
    let server = prompts::add(server);
    changing::add(server)
}

impl Harbour {
    pub(crate) fn notice(&self) -> String {
        let notice = self.0.notice.lock().unwrap_or_else(PoisonError::into_inner);
        notice.clone().unwrap_or_else(|| "All berths are open.".to_owned())
    }

    pub(crate) fn post(&self, text: String) {
        *self.0.notice.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// Reserves the next berth.
    pub(crate) fn reserve(&self) -> usize {
        self.0.berths.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of reserved berths.
    pub(crate) fn reserved(&self) -> usize {
        self.0.berths.load(Ordering::Relaxed)
    }

    /// Counts the runs of the handler that asks the user.
    pub(crate) fn begin_asking(&self) {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn begun_asking(&self) -> usize {
        self.0.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn weigh(&self) {
        self.0.weighed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of weighed anchors.
    pub(crate) fn weighed(&self) -> usize {
        self.0.weighed.load(Ordering::Relaxed)
    }
}
