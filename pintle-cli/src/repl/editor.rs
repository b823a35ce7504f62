use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc as blocking,
    },
    time::Duration,
};

use rustyline::{
    Behavior, ColorMode, CompletionType, Config, Context, Editor, Helper,
    completion::{Candidate, Completer},
    error::ReadlineError,
    highlight::{CmdKind, Highlighter},
    hint::Hinter,
    history::{History as _, MemHistory},
    validate::Validator,
};
use tokio::sync::mpsc;

use super::history::MAX_LINES;
use crate::{
    failure::Failure,
    output::{Console, EditedLine, LineReader, LineRequest, TypedLine},
};

/// How long the editor waits for candidates. The server has less time than this.
const MAX_WAIT: Duration = Duration::from_secs(4);

/// A request to complete the word before a position of a line.
pub(super) struct CompletionRequest {
    pub(super) line: String,
    pub(super) position: usize,
    pub(super) reply: blocking::SyncSender<Completions>,
}

/// The candidates for a word, and where it begins.
#[derive(Debug, Default)]
pub(super) struct Completions {
    pub(super) start: usize,
    pub(super) words: Vec<CompletedWord>,
}

/// A candidate: what is shown, and what is inserted. Neither has control characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct CompletedWord {
    pub(super) shown: String,
    pub(super) inserted: String,
}

/// Starts the editor of lines in a thread of its own. It completes words by requests.
pub(super) fn start(lines: &[String], requests: mpsc::Sender<CompletionRequest>) -> Result<Console, Failure> {
    let failed =
        |error: ReadlineError| Failure::usage(format!("the terminal cannot be used: {error}"), "tty");
    let config = Config::builder()
        .max_history_size(MAX_LINES)
        .map_err(failed)?
        .history_ignore_dups(true)
        .map_err(failed)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        // The prompt has its colours, or none. Without this, the editor does not tell where the cursor is.
        .color_mode(ColorMode::Forced)
        // The output of verbs may go to a file.
        .behavior(Behavior::PreferTerm)
        .build();
    let mut editor =
        Editor::<LineHelper, MemHistory>::with_history(config.clone(), MemHistory::with_config(&config))
            .map_err(failed)?;
    for line in lines {
        editor.history_mut().add(line).map_err(failed)?;
    }
    let edited = EditedLine::default();
    let is_command = Arc::new(AtomicBool::new(false));
    editor.set_helper(Some(LineHelper { is_command: is_command.clone(), requests, edited: edited.clone() }));
    let line = edited.clone();
    let reader = LineReader::start(true, move |request| {
        let LineRequest { prompt, is_command: completes, remember } = request;
        if let Some(typed) = remember {
            // Only an error of a file is one.
            let _ = editor.add_history_entry(typed);
        }
        is_command.store(completes, Ordering::Release);
        line.begin(prompt.clone());
        let read = editor.readline(&prompt);
        line.end();
        match read {
            Ok(line) => TypedLine::Line(line),
            Err(ReadlineError::Interrupted) => TypedLine::Interrupted,
            Err(_) => TypedLine::End,
        }
    });
    Ok(Console::edited(reader, edited))
}

/// The helper of the editor, which is called while a line is typed.
struct LineHelper {
    is_command: Arc<AtomicBool>,
    requests: mpsc::Sender<CompletionRequest>,
    edited: EditedLine,
}

impl Completer for LineHelper {
    type Candidate = CompletedWord;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<CompletedWord>)> {
        if !self.is_command.load(Ordering::Acquire) {
            return Ok((position, Vec::new()));
        }
        let (reply, completions) = blocking::sync_channel(1);
        let request = CompletionRequest { line: line.to_owned(), position, reply };
        let sent = self.requests.try_send(request).is_ok();
        match completions.recv_timeout(if sent { MAX_WAIT } else { Duration::ZERO }) {
            Ok(Completions { start, words }) => Ok((start, words)),
            Err(_) => Ok((position, Vec::new())),
        }
    }
}

impl Candidate for CompletedWord {
    fn display(&self) -> &str {
        &self.shown
    }

    fn replacement(&self) -> &str {
        &self.inserted
    }
}

impl Hinter for LineHelper {
    type Hint = String;
}

/// Nothing is highlighted: this is called whenever the line or the cursor changes.
impl Highlighter for LineHelper {
    fn highlight_char(&self, line: &str, position: usize, _: CmdKind) -> bool {
        self.edited.update(line, position);
        false
    }
}

impl Validator for LineHelper {}

impl Helper for LineHelper {}
