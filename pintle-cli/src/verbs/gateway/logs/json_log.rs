use std::{
    borrow::Cow,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, Thread},
    time::Duration,
};

use serde::Serialize;
use tokio::sync::oneshot;

use crate::{failure::Failure, output::Output};

/// The limit of lines that wait to be written. Names are cut, so that they are some hundred kilobytes.
const MAX_WAITING: usize = 1_024;
/// The limit of characters of a name in a log.
const MAX_NAME: usize = 200;
/// The time after which a line that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The time that waiting lines have to be written when the gateway ends.
const FLUSH: Duration = Duration::from_secs(2);

/// A file of JSON objects, one a line, which a thread of its own appends to. Only its owner can read a file that is created.
///
/// A line that cannot be written is kept, and tried again; those for which the queue has no room are lost, and counted.
#[derive(Clone)]
pub(in super::super) struct JsonLog {
    messages: SyncSender<LogMessage>,
    shared: Arc<SharedLog>,
    writer: Thread,
}

struct SharedLog {
    path: PathBuf,
    is_failing: AtomicBool,
    lost: AtomicU64,
    /// Whether the file is opened again before the next line.
    reopens: AtomicBool,
    output: Output,
}

enum LogMessage {
    Line(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

impl JsonLog {
    /// Opens a file, and creates it if there is none.
    pub(in super::super) fn open(path: &Path, output: &Output) -> Result<Self, Failure> {
        let unusable = |error: io::Error| {
            let message = format!("the log `{}` cannot be written: {error}", path.display());
            Failure::usage(message, format!("touch {}", path.display()))
        };
        let file = append_to(path).map_err(unusable)?;
        let shared = Arc::new(SharedLog {
            path: path.to_owned(),
            is_failing: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            reopens: AtomicBool::new(false),
            output: output.clone(),
        });
        let (messages, waiting) = sync_channel(MAX_WAITING);
        let writer = LogWriter { shared: shared.clone(), file };
        let thread = thread::Builder::new().name("log".into()).spawn(move || writer.run(&waiting));
        Ok(Self { messages, shared, writer: thread.map_err(unusable)?.thread().clone() })
    }

    /// Has a line appended, without waiting for it.
    pub(in super::super) fn write(&self, record: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(record) else { return };
        line.push(b'\n');
        if self.messages.try_send(LogMessage::Line(line)).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            self.shared.failed("it takes too long");
        }
    }

    /// Has the file opened again before the next line: another process may have renamed it.
    pub(in super::super) fn reopen(&self) {
        self.shared.reopens.store(true, Ordering::Release);
        self.writer.unpark();
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns whether lines cannot be written.
    pub(in super::super) fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Ordering::Acquire)
    }

    /// Returns the number of lines that are lost.
    pub(in super::super) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, for a limited time.
    pub(in super::super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.messages.try_send(LogMessage::Flush(done)).is_ok() {
            let _ = tokio::time::timeout(FLUSH, flushed).await;
        }
    }
}

impl SharedLog {
    /// Prints that the file cannot be written, once until it can be.
    fn failed(&self, why: impl std::fmt::Display) {
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            self.output.warning(format!("the log `{}` cannot be written: {why}", self.path.display()));
        }
    }

    fn succeeded(&self) {
        if self.is_failing.swap(false, Ordering::AcqRel) {
            let (path, lost) = (self.path.display(), self.lost.load(Ordering::Relaxed));
            self.output.warning(format!("the log `{path}` is written again; {lost} lines are lost so far"));
        }
    }
}

/// The thread of a log.
struct LogWriter {
    shared: Arc<SharedLog>,
    file: File,
}

impl LogWriter {
    /// Writes until all values of the log are dropped.
    fn run(mut self, messages: &Receiver<LogMessage>) {
        while let Ok(mut message) = messages.recv() {
            loop {
                match message {
                    LogMessage::Line(line) => self.write(&line),
                    LogMessage::Flush(done) => drop(done.send(())),
                }
                match messages.try_recv() {
                    Ok(next) => message = next,
                    // With lines that wait, the next one may find the queue full again.
                    Err(_) => break self.shared.succeeded(),
                }
            }
        }
    }

    /// Appends a line, as often as it takes.
    fn write(&mut self, line: &[u8]) {
        let mut rest = line;
        loop {
            if self.shared.reopens.swap(false, Ordering::AcqRel) {
                match append_to(&self.shared.path) {
                    Ok(file) => (self.file, rest) = (file, line),
                    Err(error) => {
                        self.shared.reopens.store(true, Ordering::Release);
                        self.shared.failed(error);
                        thread::park_timeout(RETRY);
                        continue;
                    }
                }
            }
            match self.file.write(rest) {
                // What is written in part goes on where it has ended.
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.shared.failed(error);
                    thread::park_timeout(RETRY);
                }
            }
            if rest.is_empty() {
                return;
            }
        }
    }
}

/// Opens a file to append to. One that is created is for its owner.
fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns a name or URI as logs have it: cut, and without a query, which may have secrets.
pub(in super::super) fn logged(name: &str) -> Cow<'_, str> {
    cut(name.split(['?', '#']).next().unwrap_or_default())
}

/// Returns the beginning of a text, as logs have it.
pub(in super::super) fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_full_disk_is_reported_once_and_what_waits_is_written_when_there_is_room() {
        let path = std::env::temp_dir().join(format!("pintle-json-log-{}", std::process::id()));
        symlink("/dev/full", &path).unwrap();
        let (output, printed) = Output::kept();
        let log = JsonLog::open(&path, &output).unwrap();
        log.write(&json!({"line": 0}));
        while !log.is_failing() {
            tokio::task::yield_now().await;
        }
        for line in 1..=MAX_WAITING + 2 {
            log.write(&json!({"line": line}));
        }
        assert_eq!(log.lost(), 2, "the others wait");
        fs::remove_file(&path).unwrap();
        log.reopen();
        while log.is_failing() {
            tokio::task::yield_now().await;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        // As logs are rotated.
        fs::remove_file(&path).unwrap();
        log.reopen();
        log.write(&json!({"line": "new"}));
        log.flush().await;
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"line\":\"new\"}\n");
        fs::remove_file(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (MAX_WAITING + 1, "{\"line\":0}"));
        assert_eq!(mode, 0o600);
        for (detail, times) in
            [("cannot be written: No space left", 1), ("written again; 2 lines are lost", 1)]
        {
            assert_eq!(printed().matches(detail).count(), times, "{}", printed());
        }
    }

    #[test]
    fn names_are_cut_and_have_no_query() {
        let long = "ä".repeat(MAX_NAME + 1);
        assert_eq!(logged("note://1?key=s3cret"), "note://1");
        assert_eq!(logged("note://1#s3cret"), "note://1");
        assert_eq!(logged(&long), format!("{}…", &long[..2 * MAX_NAME]));
    }
}
