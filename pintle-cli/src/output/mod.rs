//! Printing: results to standard output, everything else to standard error.
//!
//! What servers send is untrusted. It reaches a terminal only as [`Text`] or as JSON, and both have their control characters made
//! visible; `clippy.toml` refuses other ways to standard output.

mod console;
mod edited_line;
mod failed;
mod image;
mod line_reader;
mod log;
mod pager;
mod paint;
mod pick;
mod printable;
mod stream;
mod terminal;
mod text;

use std::{
    io::{self, IsTerminal as _},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle::message_log::{MessageFile, MessageLog};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use failed::{failure_json, failure_text};
use printable::escape_json;
use stream::Stream;

pub(crate) use console::{Console, Turn};
pub(crate) use edited_line::EditedLine;
pub(crate) use image::Image;
pub(crate) use line_reader::{LineReader, LineRequest, TypedLine};
use log::LogQueue;
pub(crate) use log::{LogFormat, LogSettings, SERVICE};
pub use paint::Paint;
pub(crate) use paint::Tone;
pub(crate) use pick::Pick;
pub(crate) use printable::{cut, hides};
pub(crate) use stream::own_stdout;
pub(crate) use text::{Text, counted};

/// Removes the line that the cursor is in.
const CLEAR_LINE: &[u8] = b"\r\x1b[2K";

/// Where a verb prints to. A clone prints to the same streams.
#[derive(Clone)]
pub(crate) struct Output {
    settings: OutputSettings,
    out: Arc<Mutex<Stream>>,
    err: Arc<Mutex<Stream>>,
    width: usize,
    /// Whether the user is being asked something: progress would overwrite it.
    is_prompting: Arc<AtomicBool>,
    /// Whether there is a line of progress.
    has_progress: Arc<AtomicBool>,
    /// The log of the messages of connections, while they are traced.
    message_log: Option<MessageLog>,
    /// The recording to flush before the command ends.
    recording: Arc<OnceLock<RecordingFile>>,
    /// The log of the service that the command is, which has the notes.
    log: Arc<OnceLock<Arc<LogQueue>>>,
    console: Console,
}

/// A recording, and whether it is printed to standard error.
struct RecordingFile {
    file: MessageFile,
    is_printed: bool,
}

/// How long the command waits at its end for a recording to be written.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The options of output.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputSettings {
    pub(crate) json: bool,
    pub(crate) raw: bool,
    pub(crate) pick: Option<Pick>,
    /// The command line that was typed, with `--json` instead of `--pick`.
    pub(crate) without_pick: String,
    /// Whether notes and progress are left out.
    pub(crate) only_results: bool,
    /// How often `-v` was given.
    pub(crate) verbose: u8,
    /// Whether long results are printed without a pager.
    pub(crate) no_pager: bool,
}

impl OutputSettings {
    /// Returns these settings, with those of `base` that are on.
    pub(crate) fn over(self, base: &Self) -> Self {
        Self {
            json: self.json || base.json,
            raw: self.raw || base.raw,
            pick: self.pick.or_else(|| base.pick.clone()),
            without_pick: self.without_pick,
            only_results: self.only_results || base.only_results,
            verbose: self.verbose.max(base.verbose),
            no_pager: self.no_pager || base.no_pager,
        }
    }
}

impl Output {
    pub(crate) fn new(settings: OutputSettings) -> Self {
        let (out, err) = Stream::both(settings.raw);
        Self {
            settings,
            out,
            err,
            width: terminal::width(),
            is_prompting: Arc::default(),
            has_progress: Arc::default(),
            message_log: None,
            recording: Arc::default(),
            log: Arc::default(),
            console: Console::default(),
        }
    }

    /// Returns an output whose notes are kept, and a function that returns those until then.
    #[cfg(test)]
    pub(crate) fn kept() -> (Self, impl Fn() -> String) {
        let (kept, notes) = stream::KeptText::new();
        let mut output = Self::new(OutputSettings::default());
        output.out = Arc::new(Mutex::new(Stream::to(io::sink())));
        output.err = Arc::new(Mutex::new(Stream::to(kept)));
        (output, notes)
    }

    /// Returns this output, with a log of the messages of connections.
    pub(crate) fn with_message_log(mut self, log: MessageLog) -> Self {
        self.message_log = Some(log);
        self
    }

    /// The log of the messages of connections, while they are traced.
    pub(crate) fn message_log(&self) -> Option<&MessageLog> {
        self.message_log.as_ref()
    }

    /// Sets the recording that is flushed before the command ends.
    pub(crate) fn flush_at_end(&self, file: MessageFile, is_printed: bool) {
        // A command has one.
        let _ = self.recording.set(RecordingFile { file, is_printed });
    }

    /// Waits until the recording is written, up to a time, and prints how much of it was dropped.
    pub(crate) async fn flush_recording(&self) {
        let Some(RecordingFile { file, is_printed }) = self.recording.get() else { return };
        let is_flushed = tokio::time::timeout(FLUSH_TIMEOUT, file.flush()).await.is_ok();
        match file.dropped() {
            // Standard error is not read: this would wait for it too.
            _ if !is_flushed && *is_printed => {}
            _ if !is_flushed => self.note("the end of the recording is missing: its output is too slow"),
            0 => {}
            dropped => self.note(format_args!("{dropped} messages are missing in the recording")),
        }
    }

    /// Begins the log of a service: what is noted from now on is an event of it, and nothing waits for standard error.
    pub(crate) fn start_log(&self, settings: LogSettings) -> Result<(), Failure> {
        let log = log::start(settings).map_err(|error| Failure::internal(&error))?;
        // A command is one service.
        let _ = self.log.set(log);
        Ok(())
    }

    /// Returns the number of lines of the log that are lost.
    pub(crate) fn lost_log_lines(&self) -> u64 {
        self.log.get().map_or(0, |log| log.lost())
    }

    /// Waits until the log is written, up to a time.
    pub(crate) async fn flush_log(&self) {
        if let Some(log) = self.log.get() {
            log.flush().await;
        }
    }

    /// Returns an output with other settings, to the same terminal.
    pub(crate) fn with_settings(&self, settings: OutputSettings) -> Self {
        let (out, err) = Stream::both(settings.raw);
        Self { settings, out, err, width: terminal::width(), ..self.clone() }
    }

    /// Returns an output whose questions are asked at this terminal.
    pub(crate) fn with_console(&self, console: Console) -> Self {
        Self { console, ..self.clone() }
    }

    pub(crate) fn settings(&self) -> &OutputSettings {
        &self.settings
    }

    /// The terminal that the user types at.
    pub(crate) fn console(&self) -> &Console {
        &self.console
    }

    /// The width of a line.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether results are printed as JSON, or as a part of it.
    pub(crate) fn is_structured(&self) -> bool {
        self.settings.json || self.settings.pick.is_some()
    }

    /// How often `-v` was given.
    pub(crate) fn verbosity(&self) -> u8 {
        self.settings.verbose
    }

    /// Whether progress can be shown and overwritten.
    pub(crate) fn shows_progress(&self) -> bool {
        let is_shown = !self.settings.json && !self.settings.only_results;
        // Traced messages would be in the middle of it.
        is_shown && self.message_log.is_none() && lock(&self.err).is_terminal
    }

    /// Whether there is a user who can be asked.
    pub(crate) fn is_interactive(&self) -> bool {
        io::stdin().is_terminal() && lock(&self.err).is_terminal
    }

    /// Removes the line of progress, and shows none until [`end_prompt`](Self::end_prompt).
    pub(crate) fn begin_prompt(&self) {
        self.progress(&Text::new());
        self.is_prompting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end_prompt(&self) {
        self.is_prompting.store(false, Ordering::Relaxed);
    }

    /// Prints the questions that a server asks, if programs read the output.
    pub(crate) fn input_required(&self, json: &Value) -> Result<(), Failure> {
        if self.settings.json { self.json_line(json, false) } else { Ok(()) }
    }

    /// Whether bytes that are not text can be printed.
    pub(crate) fn takes_bytes(&self) -> bool {
        self.settings.raw || !lock(&self.out).is_terminal
    }

    /// Whether standard output is a terminal that can show images.
    pub(crate) fn shows_images(&self) -> bool {
        lock(&self.out).shows_images()
    }

    /// Prints the result of a verb: with `--json` as one JSON object, with `--pick` a part of that, otherwise as text.
    pub(crate) fn result(&self, json: &impl Serialize, text: impl FnOnce(&mut Text)) -> Result<(), Failure> {
        if !self.is_structured() {
            return self.text(text);
        }
        let pretty = lock(&self.out).is_terminal;
        self.json(json, pretty)
    }

    /// Prints one of many results: with `--json` as a line of JSON.
    pub(crate) fn event(&self, json: &impl Serialize, text: impl FnOnce(&mut Text)) -> Result<(), Failure> {
        if self.is_structured() {
            return self.json(json, false);
        }
        let mut all = Text::new();
        text(&mut all);
        written(lock(&self.out).write(&all))
    }

    /// Prints a JSON document, whatever the options are.
    pub(crate) fn document(&self, json: &Value) -> Result<(), Failure> {
        self.json_line(json, true)
    }

    /// Prints bytes unchanged. Callers check [`takes_bytes`](Self::takes_bytes).
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        written(lock(&self.out).write_bytes(bytes))
    }

    /// Prints bytes of another program: unchanged, unless they are for a terminal.
    pub(crate) fn pass_on(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self.takes_bytes() {
            true => self.bytes(bytes),
            // It may be one piece of many: a pager is not for it.
            false => written(lock(&self.out).write(Text::new().block(String::from_utf8_lossy(bytes)))),
        }
    }

    /// Whether standard error of another program can be this one.
    pub(crate) fn shares_errors(&self) -> bool {
        self.settings.raw || !lock(&self.err).is_terminal
    }

    /// Prints a line of the standard error of another program.
    pub(crate) fn foreign_error(&self, line: &str) {
        self.print_error(Text::from(line));
    }

    /// Closes standard output, so that its reader is notified of the end before the command ends.
    pub(crate) fn close(&self) {
        let _out = lock(&self.out);
        stream::close_stdout();
    }

    /// Prints text for people to standard output. One that is longer than the terminal is shown in the user's pager.
    pub(crate) fn text(&self, text: impl FnOnce(&mut Text)) -> Result<(), Failure> {
        let mut all = Text::new();
        text(&mut all);
        let shown = lock(&self.out).rendered(&all);
        // A pager would print the data of an image.
        if !all.has_images()
            && self.has_pager()
            && let Some(rows) = terminal::height()
            && pager::is_longer(&shown, rows, self.width)
            && pager::show(&shown)
        {
            return Ok(());
        }
        written(lock(&self.out).write_bytes(shown.as_bytes()))
    }

    /// Whether a user can leave a pager. Programs do not get one, nor those who want the characters as they are.
    fn has_pager(&self) -> bool {
        let OutputSettings { raw, no_pager, .. } = self.settings;
        let is_plain = raw || no_pager || self.is_structured();
        !is_plain && lock(&self.out).is_terminal && io::stdin().is_terminal()
    }

    /// Prints a note to standard error, unless `--quiet` was given, or `--json` without `-v`. That of a service is logged.
    pub(crate) fn note(&self, note: impl Into<Text>) {
        let OutputSettings { only_results, json, verbose, .. } = self.settings;
        if self.log.get().is_some() {
            tracing::info!(target: SERVICE, "{}", note.into().rendered_plain());
        } else if verbose > 0 || !only_results && !json {
            self.print_error(note.into());
        }
    }

    /// Prints a warning to standard error, whatever the options are. That of a service is logged.
    pub(crate) fn warning(&self, warning: impl Into<Text>) {
        match self.log.get() {
            Some(_) => tracing::warn!(target: SERVICE, "{}", warning.into().rendered_plain()),
            None => self.print_error(warning.into()),
        }
    }

    /// Prints a question to standard error, whatever the options are. The line is not ended.
    pub(crate) fn question(&self, question: &Text) {
        // Where nobody reads, there is nobody to tell.
        let _ = lock(&self.err).write(question);
    }

    /// Prints a record to standard error, whatever the options are: with `--json` as the line that it is.
    pub(crate) fn trace(&self, line: &str, text: impl FnOnce() -> Text) {
        // Where nobody reads, there is nobody to tell.
        let _ = match (self.settings.json, self.settings.raw) {
            (true, raw) => {
                let line = if raw { line.to_owned() } else { escape_json(line) } + "\n";
                lock(&self.err).write_bytes(line.as_bytes())
            }
            (false, _) => lock(&self.err).write(&text()),
        };
    }

    /// Returns a text as standard error shows it: without colours, and with those that are on.
    pub(crate) fn rendered(&self, text: &Text) -> (String, String) {
        (text.rendered_plain(), lock(&self.err).rendered(text))
    }

    /// Prints a detail to standard error if `-v` was given. That of a service is logged.
    pub(crate) fn detail(&self, detail: impl Into<Text>) {
        if self.log.get().is_some() {
            tracing::debug!(target: SERVICE, "{}", detail.into().rendered_plain());
        } else if self.settings.verbose > 0 {
            self.print_error(detail.into());
        }
    }

    /// Replaces the line of progress on standard error; an empty text removes it.
    pub(crate) fn progress(&self, progress: &Text) {
        let had_progress = self.has_progress.swap(!progress.is_empty(), Ordering::Relaxed);
        if self.is_prompting.load(Ordering::Relaxed) || progress.is_empty() && !had_progress {
            return;
        }
        let mut err = lock(&self.err);
        // A line that wraps could not be cleared.
        let progress = progress.shortened(self.width.saturating_sub(1));
        // Where nobody reads, there is nobody to tell.
        let _ = err.write_bytes(CLEAR_LINE).and_then(|()| err.write(&progress));
    }

    /// Prints that the user has cancelled the verb.
    pub(crate) fn cancelled(&self) {
        let is_at_progress = self.has_progress.load(Ordering::Relaxed);
        if lock(&self.err).is_terminal && !is_at_progress {
            // After the `^C` of the terminal.
            self.question(Text::new().end());
        }
        self.note("cancelled");
    }

    /// Prints why the command failed: with `--json` as a line of JSON, in either case to standard error.
    pub(crate) fn failure(&self, failure: &Failure) {
        if failure.is_silent() {
            return;
        }
        match self.settings.json {
            true => {
                let line = escape_json(&failure_json(failure).to_string()) + "\n";
                let _ = lock(&self.err).write_bytes(line.as_bytes());
            }
            false => self.print_error(failure_text(failure)),
        }
    }

    fn json(&self, json: &impl Serialize, pretty: bool) -> Result<(), Failure> {
        let value = serde_json::to_value(json).map_err(|error| Failure::internal(&error))?;
        let Some(pick) = &self.settings.pick else {
            return self.json_line(&value, pretty);
        };
        let found = pick
            .apply(&value)
            .map_err(|reason| Failure::usage(format!("--pick: {reason}"), &self.settings.without_pick))?;
        for value in found {
            match value {
                Value::String(text) if !self.settings.json => {
                    self.text(|out| {
                        out.block(text);
                    })?;
                }
                value => self.json_line(value, pretty && !self.settings.json)?,
            }
        }
        Ok(())
    }

    fn json_line(&self, value: &Value, pretty: bool) -> Result<(), Failure> {
        let printed = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        let printed = printed.map_err(|error| Failure::internal(&error))?;
        let printed = if self.settings.raw { printed } else { escape_json(&printed) };
        written(lock(&self.out).write_bytes((printed + "\n").as_bytes()))
    }

    fn print_error(&self, mut text: Text) {
        text.end();
        let mut err = lock(&self.err);
        let lines = err.rendered(&text);
        if let Some(redrawn) = self.console.edited_line().and_then(|line| line.print_above(&lines)) {
            // Where nobody reads, there is nobody to tell.
            let _ = err.write_bytes(redrawn.as_bytes());
            return;
        }
        // Progress is shown again when there is more of it.
        let clear: &[u8] = if self.has_progress.swap(false, Ordering::Relaxed) { CLEAR_LINE } else { b"" };
        // Where nobody reads, there is nobody to tell.
        let _ = err.write_bytes(clear).and_then(|()| err.write_bytes(lines.as_bytes()));
    }
}

fn written(written: io::Result<()>) -> Result<(), Failure> {
    written.map_err(|error| Failure::unwritten(&error))
}

fn lock(stream: &Mutex<Stream>) -> MutexGuard<'_, Stream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
