use std::{
    io::{self, Write},
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{Dispatch, Level, subscriber::DefaultGuard};

/// Everything that was printed.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Has what is logged on this thread printed until the guard is dropped.
    pub(crate) fn subscribe(&self, level: Level) -> DefaultGuard {
        let writer = self.clone();
        let printing = tracing_subscriber::fmt().with_ansi(false).with_max_level(level);
        set_subscriber(printing.with_writer(move || writer.clone()).finish())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sets the subscriber of this thread until the guard is dropped.
///
/// While a process has one dispatcher, tracing asks that of the thread that reaches an event first, and remembers its answer for all
/// threads: another test without a subscriber would turn the event off. A second dispatcher avoids that.
fn set_subscriber(subscriber: impl Into<Dispatch>) -> DefaultGuard {
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));
    LazyLock::force(&SECOND);
    tracing::dispatcher::set_default(&subscriber.into())
}
