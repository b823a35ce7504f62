use std::{convert::Infallible, future::pending, io, pin::pin};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::sleep,
};

use super::{
    ChildCommand, Exit, STATUS_LAG, Stage,
    keeper::{
        self, Kept,
        Winner::{First, Second},
        race,
    },
    stderr::Lines,
};
use crate::transport::stream::BoxReader;

/// The result of a program that was [run](ChildCommand::run) to its end.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The standard output.
    pub stdout: Vec<u8>,
    /// Whether it wrote more than the limit, and was ended for that.
    pub is_cut: bool,
    /// How it ended.
    pub exit: Exit,
    /// The last lines of its standard error in backticks, with the error message first, if they are captured
    /// ([`Stderr::Lines`](super::Stderr::Lines)).
    pub last_words: Option<String>,
}

impl ChildCommand {
    /// Runs the program to its end: writes `input` to its standard input and closes that, and reads up to `limit` bytes of its standard
    /// output. `on_line` is called with each line of the output as it arrives, cut after 8 KiB.
    ///
    /// Dropping the future ends the program and all that it started, in the stages of [`Child::shutdown`](super::Child::shutdown). So does
    /// more output than the limit, and what is left of its process group when it has exited is ended too.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or its output cannot be read.
    ///
    /// ```
    /// use pintle::transport::{Child, Stderr};
    ///
    /// # #[cfg(unix)]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let sort = Child::command("sort").arg("-r").stderr(Stderr::Null);
    /// let sorted = sort.run("a\nb\n", 1 << 20, |_| {}).await?;
    /// assert_eq!((&*sorted.stdout, sorted.exit.to_string()), (&b"b\na\n"[..], "exited with status 0".to_owned()));
    /// # Ok(()) }
    /// # #[cfg(not(unix))] fn main() {}
    /// ```
    pub async fn run(
        self,
        input: impl Into<Bytes>,
        limit: usize,
        on_line: impl FnMut(&str) + Send,
    ) -> io::Result<RunOutput> {
        let input = input.into();
        let (stream, mut kept) = keeper::start(&self)?;
        kept.leave_input();
        let (reader, mut writer) = stream.into_parts();
        let mut running = Running { kept, reader: Some(reader) };
        let write = async move {
            // One that does not read its input may do without.
            let _ = writer.write_all(&input).await;
            let _ = writer.shutdown().await;
            drop(writer);
            pending::<Infallible>().await
        };
        let ended = async {
            let read = running.read(limit, on_line).await?;
            if read.1 {
                running.end();
            }
            running.kept.exited().await;
            io::Result::Ok(read)
        };
        let (stdout, is_cut) = match race(ended, write).await {
            First(read) => read?,
            Second(never) => match never {},
        };
        let exit = running.kept.exit().unwrap_or(Exit { status: None, stage: Stage::Killed });
        Ok(RunOutput { stdout, is_cut, exit, last_words: running.kept.last_words() })
    }
}

/// A program that runs, and is ended when this is dropped.
struct Running {
    kept: Kept,
    reader: Option<BoxReader>,
}

impl Running {
    /// Reads the output to its end, or until the program and its process group are gone: a process that left the group may hold it open
    /// longer. Returns it, and whether there was more than the limit.
    async fn read(&mut self, limit: usize, on_line: impl FnMut(&str) + Send) -> io::Result<(Vec<u8>, bool)> {
        let Some(reader) = &mut self.reader else { return Ok((Vec::new(), false)) };
        let over = self.kept.over();
        let gone = async {
            over.await;
            sleep(STATUS_LAG).await;
        };
        let mut gone = pin!(gone);
        let (mut read, mut part, mut lines) = (Vec::new(), vec![0; PART], Lines::new(on_line));
        loop {
            let length = match race(reader.read(&mut part), gone.as_mut()).await {
                First(length) => length?,
                Second(()) => 0,
            };
            let part = part.get(..length).unwrap_or_default();
            if part.is_empty() {
                lines.end();
                return Ok((read, false));
            }
            lines.take(part);
            let room = limit.saturating_sub(read.len());
            read.extend_from_slice(&part[..length.min(room)]);
            if length > room {
                return Ok((read, true));
            }
        }
    }

    fn end(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.kept.end(reader);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        if tokio::runtime::Handle::try_current().is_err() {
            // The runtime that keeps it may never be driven again.
            self.kept.kill();
        }
    }
}

/// The most bytes that are read at a time.
const PART: usize = 16 << 10;
