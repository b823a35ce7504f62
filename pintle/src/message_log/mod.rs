//! The log of all messages: for debugging, for traces and for recordings.
//!
//! A [`MessageLog`] receives every message that a server or a client sends and receives, on every transport, with its time,
//! direction, connection and, over HTTP, its exchange and headers. Secrets are [redacted](Redactor) before the log's function
//! sees a record. [`MessageFile`] writes records to a file, without ever delaying the protocol.
//!
//! ```
//! use pintle::message_log::{MessageLog, MessageRecord};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> pintle::Result<()> {
//! # #[cfg(all(feature = "client", feature = "server"))] {
//! use pintle::{Client, Server};
//!
//! let (sender, mut records) = tokio::sync::mpsc::channel(100);
//! let log = MessageLog::new(move |record: &MessageRecord<'_>| drop(sender.try_send(record.to_string())));
//! let server = Server::new("demo", "1.0.0").message_log(log);
//! let _connection = Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
//! assert!(records.recv().await.unwrap().contains("server/discover"));
//! # }
//! # Ok(()) }
//! ```

mod connection_log;
mod file;
#[cfg(any(feature = "http-client", feature = "http-server"))]
mod http_exchange;
mod json;
mod record;
mod redactor;
pub mod timestamp;
pub(crate) mod transport_kind;

use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

pub use connection_log::ConnectionLog;
pub use file::MessageFile;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use http_exchange::{BodyLog, HttpExchangeLog};
pub use record::{Direction, HttpRecord, MessageRecord, Payload, Side};
pub use redactor::Redactor;

/// A log of messages: a function that receives a [`MessageRecord`] of each, and the [`Redactor`] that is applied before.
///
/// Cheap to clone. `Server::message_log` and `Client::message_log` attach it to all connections of a server or a client;
/// [`wrap`](Self::wrap) attaches it to one transport. One log can be used by several servers and clients: its numbers are
/// unique.
///
/// The function runs in the task of the connection. It must not block; a panic in it is caught and reported once.
#[derive(Clone)]
pub struct MessageLog {
    sink: Arc<Sink>,
    redactor: Arc<Redactor>,
    counters: Arc<Counters>,
}

type Sink = dyn Fn(&MessageRecord<'_>) + Send + Sync;

/// The last numbers that were given.
#[derive(Default)]
struct Counters {
    records: AtomicU64,
    connections: AtomicU64,
    #[cfg(any(feature = "http-client", feature = "http-server"))]
    exchanges: AtomicU64,
    panics: AtomicU64,
}

impl MessageLog {
    /// Creates a log that passes each record to a function.
    pub fn new(sink: impl Fn(&MessageRecord<'_>) + Send + Sync + 'static) -> Self {
        Self { sink: Arc::new(sink), redactor: Arc::default(), counters: Arc::default() }
    }

    /// Creates a log that writes each record as a line for people, such as `1 → {…}`, to standard error or to a buffer.
    ///
    /// The writer is called in the task of the connection, so use [`to_file`](Self::to_file) for files. What the writer does
    /// not accept is lost.
    ///
    /// ```
    /// use pintle::message_log::MessageLog;
    ///
    /// let log = MessageLog::to_writer(std::io::stderr());
    /// ```
    pub fn to_writer(writer: impl io::Write + Send + 'static) -> Self {
        let writer = Mutex::new(writer);
        Self::new(move |record| {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(writer, "{record}").and_then(|()| writer.flush());
        })
    }

    /// Creates a log that writes each record to a file.
    pub fn to_file(file: &MessageFile) -> Self {
        let file = file.clone();
        Self::new(move |record| file.write(record))
    }

    /// Creates a log that emits each record as a `tracing` event of the target `pintle::message_log` and the level `TRACE`.
    pub fn to_tracing() -> Self {
        Self::new(|record| tracing::trace!(target: "pintle::message_log", "{record}"))
    }

    /// Sets what is redacted, instead of [`Redactor::new`].
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Arc::new(redactor);
        self
    }

    /// Passes a record to the function.
    fn emit(&self, record: &MessageRecord<'_>) {
        if catch_unwind(AssertUnwindSafe(|| (self.sink)(record))).is_err()
            && self.counters.panics.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::error!("the function of a message log panicked: the record is lost, and others may be");
        }
    }
}

impl Counters {
    fn next(counter: &AtomicU64) -> u64 {
        counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl fmt::Debug for MessageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLog").field("redactor", &self.redactor).finish_non_exhaustive()
    }
}
