use std::{
    io::{self, BufRead as _},
    sync::mpsc as blocking,
    thread,
};

use tokio::sync::mpsc;

/// A thread that reads lines when it is asked to: nobody waits for it when the command ends.
#[derive(Debug)]
pub(crate) struct LineReader {
    requests: blocking::SyncSender<LineRequest>,
    lines: mpsc::Receiver<TypedLine>,
    /// Whether a line was requested and not received: the question was withdrawn while the user typed.
    is_reading: bool,
    /// Whether the reader shows the prompt itself, and edits the line.
    edits: bool,
}

/// A request for a line.
#[derive(Debug, Default)]
pub(crate) struct LineRequest {
    /// The prompt, without colours and with them.
    pub(crate) prompt: (String, String),
    /// Whether the line is a command: it is completed, and may be remembered. Answers to questions are not.
    pub(crate) is_command: bool,
    /// A line to add to the history.
    pub(crate) remember: Option<String>,
}

/// A line that the user typed, or the key that ended it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TypedLine {
    Line(String),
    /// Ctrl-D, or the end of a file.
    End,
    /// Ctrl-C, where the terminal does not make a signal of it.
    Interrupted,
}

impl LineReader {
    /// Starts a reader of standard input.
    pub(super) fn of_stdin() -> Self {
        Self::start(false, |_| {
            let mut line = String::new();
            match io::stdin().lock().read_line(&mut line) {
                Ok(1..) => TypedLine::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
                _ => TypedLine::End,
            }
        })
    }

    /// Starts a reader. `read` is called in a thread of its own, for one line at a time.
    pub(crate) fn start(
        edits: bool,
        mut read: impl FnMut(LineRequest) -> TypedLine + Send + 'static,
    ) -> Self {
        let (requests, wanted) = blocking::sync_channel(1);
        // One line is read at a time.
        let (sender, lines) = mpsc::channel(1);
        thread::spawn(move || {
            while let Ok(request) = wanted.recv() {
                if sender.blocking_send(read(request)).is_err() {
                    return;
                }
            }
        });
        Self { requests, lines, is_reading: false, edits }
    }

    pub(super) fn edits(&self) -> bool {
        self.edits
    }

    pub(super) fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Reads a line.
    pub(super) async fn read(&mut self, request: LineRequest) -> TypedLine {
        if self.is_reading && self.edits {
            // It was typed as the answer to a question that was withdrawn.
            self.receive().await;
        }
        if !self.is_reading && self.requests.send(request).is_err() {
            return TypedLine::End;
        }
        self.is_reading = true;
        self.receive().await
    }

    async fn receive(&mut self) -> TypedLine {
        let line = self.lines.recv().await.unwrap_or(TypedLine::End);
        self.is_reading = false;
        line
    }
}
