use std::{
    io::{self, Write},
    path::PathBuf,
};

use pintle::message_log::{MessageFile, MessageLog, Redactor};

use super::{RecordArgs, header, printed};
use crate::{
    args::quoted,
    failure::Failure,
    output::{FLUSH_TIMEOUT, Output},
};

/// A recording that is being written: to a file, or for people to standard error.
///
/// A thread writes it. Messages wait for that in a queue of 8 MiB, and those that find it full are dropped and counted: a slow disk
/// or terminal never delays the traffic.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    file: MessageFile,
    redactor: Redactor,
}

impl Recorder {
    /// Starts a recording. The command flushes it before it ends.
    pub(crate) fn start(args: &RecordArgs, output: &Output) -> Result<Self, Failure> {
        let file = match &args.file {
            Some(path) => open(path)?,
            None => MessageFile::to_writer(PrintedLines(output.clone()))
                .map_err(|error| Failure::internal(&error))?,
        };
        output.flush_at_end(file.clone(), args.file.is_none());
        let redactor = Redactor::new();
        let redactor = if args.redact_arguments { redactor.arguments() } else { redactor };
        Ok(Self { file, redactor })
    }

    /// Waits until the messages so far are written, up to a time.
    pub(crate) async fn flush(&self) {
        // What is not written by then is reported when the command ends.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.file.flush()).await;
    }

    /// Returns the log that records messages, redacted.
    pub(crate) fn log(&self) -> MessageLog {
        MessageLog::to_file(&self.file).redactor(self.redactor.clone())
    }
}

fn open(path: &PathBuf) -> Result<MessageFile, Failure> {
    let failed = |error: io::Error| {
        let shown = path.display().to_string();
        // Those of the system do not name the file.
        let message = match error.raw_os_error() {
            None => error.to_string(),
            Some(_) => format!("`{shown}` cannot be written: {error}"),
        };
        Failure::usage(message, format!("ls -l {}", quoted(&shown)))
    };
    // It refuses files that others can read, before anything is written.
    let file = MessageFile::open(path).map_err(failed)?;
    header::append(path).map_err(failed)?;
    Ok(file)
}

/// Prints lines of a recording to standard error.
struct PrintedLines(Output);

impl Write for PrintedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.is_empty()) {
            self.0.trace(line, || printed::text(line));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
