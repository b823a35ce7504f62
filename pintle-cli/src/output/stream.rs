#![expect(clippy::disallowed_methods, reason = "the one file that opens standard output and standard error")]

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex},
};

use super::{
    image::ImageProtocol,
    paint::Paint,
    text::{Rendering, Text},
};

/// Standard output or standard error.
pub(super) struct Stream {
    to: Box<dyn Write + Send>,
    pub(super) is_terminal: bool,
    rendering: Rendering,
}

impl Stream {
    /// Standard output and standard error, to be shared.
    pub(super) fn both(raw: bool) -> (Arc<Mutex<Self>>, Arc<Mutex<Self>>) {
        (Arc::new(Mutex::new(Self::stdout(raw))), Arc::new(Mutex::new(Self::stderr(raw))))
    }

    /// Standard output. Text for a pipe is not changed.
    pub(super) fn stdout(raw: bool) -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let images = ImageProtocol::detect(|name| std::env::var(name).ok());
        let rendering = Rendering {
            paint: Paint::of(&out),
            raw: raw || !is_terminal,
            images: images.filter(|_| is_terminal),
        };
        Self { to: Box::new(out), is_terminal, rendering }
    }

    /// Standard error. It is for people, wherever it leads to.
    pub(super) fn stderr(raw: bool) -> Self {
        let err = io::stderr();
        let is_terminal = err.is_terminal();
        let rendering = Rendering { paint: Paint::of(&err), raw, images: None };
        Self { to: Box::new(err), is_terminal, rendering }
    }

    /// A stream to somewhere else, as it is to a pipe.
    #[cfg(test)]
    pub(super) fn to(to: impl Write + Send + 'static) -> Self {
        let rendering = Rendering { paint: Paint::PLAIN, raw: true, images: None };
        Self { to: Box::new(to), is_terminal: false, rendering }
    }

    /// Whether images are shown here.
    pub(super) fn shows_images(&self) -> bool {
        self.rendering.images.is_some()
    }

    pub(super) fn write(&mut self, text: &Text) -> io::Result<()> {
        let text = self.rendered(text);
        self.write_bytes(text.as_bytes())
    }

    /// Returns a text as it is printed here.
    pub(super) fn rendered(&self, text: &Text) -> String {
        text.render(self.rendering)
    }

    /// Writes bytes unchanged.
    pub(super) fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.to.flush()
    }
}

/// Closes standard output. What is printed later is discarded.
pub(super) fn close_stdout() {
    #[cfg(unix)]
    if let Ok(nowhere) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        // It stays open until the command ends if that fails.
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}

/// Returns standard output for texts of the command itself, such as the tour, and its colours.
pub(crate) fn own_stdout() -> (impl Write, Paint) {
    (io::stdout().lock(), Paint::of(&io::stdout()))
}

/// A stream that keeps what is written, for tests.
#[cfg(test)]
pub(super) struct KeptText(Arc<Mutex<Vec<u8>>>);

#[cfg(test)]
impl KeptText {
    /// Creates one, and a function that returns what was written until then.
    pub(super) fn new() -> (Self, impl Fn() -> String) {
        let kept = Arc::new(Mutex::new(Vec::new()));
        (Self(kept.clone()), move || String::from_utf8(kept.lock().unwrap().clone()).unwrap())
    }
}

#[cfg(test)]
impl Write for KeptText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
