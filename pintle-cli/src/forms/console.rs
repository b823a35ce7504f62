use std::{
    io::{self, BufRead as _},
    sync::mpsc as blocking,
    thread,
};

use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::output::{Output, Text};

/// The terminal that the user types at. One question at a time is asked there.
#[derive(Debug, Default)]
pub(super) struct Console(Mutex<LineReader>);

/// A thread that reads lines when it is asked to: nobody waits for it when the command ends.
#[derive(Debug, Default)]
struct LineReader {
    thread: Option<(blocking::Sender<()>, mpsc::Receiver<Option<String>>)>,
    /// Whether a line was asked for and not received: the question was withdrawn while the user typed.
    is_reading: bool,
}

/// The terminal while one question is asked.
pub(super) struct Turn<'a> {
    reader: MutexGuard<'a, LineReader>,
    output: &'a Output,
}

impl Console {
    /// Waits until no other question is asked.
    pub(super) async fn turn<'a>(&'a self, output: &'a Output) -> Turn<'a> {
        let reader = self.0.lock().await;
        output.begin_prompt();
        Turn { reader, output }
    }
}

impl Turn<'_> {
    /// Prints text above the prompt.
    pub(super) fn print(&self, text: &Text) {
        self.output.question(text);
    }

    /// Prints a prompt and reads a line. `None` if the user typed Ctrl-D.
    pub(super) async fn ask(&mut self, prompt: &Text) -> Option<String> {
        self.output.question(prompt);
        let line = self.reader.line().await;
        if line.is_none() {
            self.output.question(Text::new().end());
        }
        line
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.output.end_prompt();
    }
}

impl LineReader {
    async fn line(&mut self) -> Option<String> {
        let (wanted, lines) = self.thread.get_or_insert_with(start);
        if !self.is_reading {
            wanted.send(()).ok()?;
        }
        self.is_reading = true;
        let line = lines.recv().await.flatten();
        self.is_reading = false;
        line
    }
}

fn start() -> (blocking::Sender<()>, mpsc::Receiver<Option<String>>) {
    let (wanted, requests) = blocking::channel();
    // One line is read at a time.
    let (sender, lines) = mpsc::channel(1);
    thread::spawn(move || {
        while requests.recv().is_ok() {
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            let line = matches!(read, Ok(1..)).then(|| line.trim_end_matches(['\n', '\r']).to_owned());
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    (wanted, lines)
}
