use std::{fmt, sync::Arc};

use tokio::sync::{Mutex, MutexGuard, Notify};

use super::{EditedLine, LineReader, LineRequest, Output, Text, TypedLine};

/// The terminal that the user types at. One question at a time is asked there. A clone is the same terminal.
#[derive(Clone, Default)]
pub(crate) struct Console(Arc<ConsoleInner>);

#[derive(Default)]
struct ConsoleInner {
    reader: Mutex<Option<LineReader>>,
    /// The line that is being edited, if lines are.
    edited: Option<EditedLine>,
    interrupted: Notify,
}

/// The terminal while one question is asked.
pub(crate) struct Turn<'a> {
    console: &'a ConsoleInner,
    reader: MutexGuard<'a, Option<LineReader>>,
    output: &'a Output,
}

impl Console {
    /// Returns a terminal whose lines are edited.
    pub(crate) fn edited(reader: LineReader, line: EditedLine) -> Self {
        let (reader, edited) = (Mutex::new(Some(reader)), Some(line));
        Self(Arc::new(ConsoleInner { reader, edited, interrupted: Notify::new() }))
    }

    pub(super) fn edited_line(&self) -> Option<&EditedLine> {
        self.0.edited.as_ref()
    }

    /// Waits until no other question is asked.
    pub(crate) async fn turn<'a>(&'a self, output: &'a Output) -> Turn<'a> {
        let reader = self.0.reader.lock().await;
        output.begin_prompt();
        Turn { console: &self.0, reader, output }
    }

    /// Reads a command. The prompt is shown only where lines are edited.
    pub(crate) async fn command(&self, request: LineRequest) -> TypedLine {
        let mut reader = self.0.reader.lock().await;
        reader.get_or_insert_with(LineReader::of_stdin).read(request).await
    }

    /// Waits until the user types Ctrl-C as the answer to a question.
    pub(crate) async fn interrupted(&self) {
        self.0.interrupted.notified().await;
    }
}

impl Turn<'_> {
    /// Prints text above the prompt.
    pub(crate) fn print(&self, text: &Text) {
        self.output.question(text);
    }

    /// Prints a prompt and reads a line. `None` if the user typed Ctrl-D or Ctrl-C.
    pub(crate) async fn ask(&mut self, prompt: &Text) -> Option<String> {
        let reader = self.reader.get_or_insert_with(LineReader::of_stdin);
        let mut request = LineRequest::default();
        match reader.edits() {
            true => request.prompt = self.output.rendered(prompt),
            false => self.output.question(prompt),
        }
        match reader.read(request).await {
            TypedLine::Line(line) => Some(line),
            TypedLine::End => {
                self.output.question(Text::new().end());
                None
            }
            TypedLine::Interrupted => {
                self.console.interrupted.notify_one();
                None
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.output.end_prompt();
        let edits = |reader: &LineReader| reader.edits() && reader.is_reading();
        if self.reader.as_ref().is_some_and(edits) {
            self.output.note("the question was withdrawn: press Enter");
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}
