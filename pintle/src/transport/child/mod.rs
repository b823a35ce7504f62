mod command;
mod counted;
mod group;
mod keeper;
mod run;
mod stderr;

use std::{
    ffi::OsStr,
    fmt,
    future::Future,
    io,
    pin::Pin,
    process::ExitStatus,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

use super::{Driven, DrivenTransport, Incoming, Stream, Transport, TransportKind};
use keeper::Kept;

pub use command::ChildCommand;
pub use run::RunOutput;
pub use stderr::Stderr;

/// A server that runs as a child process and communicates over its standard streams.
///
/// It runs in a new process group, and by default inherits only a safe part of the environment: see [`Child::command`]. When the
/// process exits, is shut down, or the `Child` is dropped, the remaining processes of its group are ended too.
///
/// Dropping closes its input, and a background task ends the process. If the runtime stops before that, or the `Child` is dropped
/// outside of one, the process is killed immediately. For a graceful end, wait for [`shutdown`](Self::shutdown).
///
/// ```
/// use std::future::poll_fn;
///
/// use pintle::transport::{Child, Incoming, Transport};
///
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let mut child = Child::spawn("cat", ["-u"])?;
/// child.send(r#"{"jsonrpc":"2.0","method":"ping","id":1}"#.into());
/// poll_fn(|cx| child.poll_flush(cx)).await?;
/// let echo = poll_fn(|cx| child.poll_recv(cx)).await?;
/// assert_eq!(echo, Some(Incoming::Message(r#"{"jsonrpc":"2.0","method":"ping","id":1}"#.into())));
///
/// let exit = child.shutdown().await;
/// assert_eq!(exit.to_string(), "exited with status 0");
/// # Ok(()) }
/// # #[cfg(not(unix))] fn main() {}
/// ```
pub struct Child {
    command: ChildCommand,
    kept: Kept,
    /// Until the child is closed.
    stream: Option<Stream>,
    end: OutputState,
    closing: Option<Pin<Box<dyn Future<Output = Exit> + Send>>>,
}

/// The state of the child's output.
enum OutputState {
    /// Open until this is ready: the process has exited, and its output was read for a while. A process that left the group may
    /// hold it open longer.
    Open(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// The output ended; the exit status follows.
    Awaited(Pin<Box<dyn Future<Output = ()> + Send>>),
    Here,
}

/// Maximum delay between the end of a child's output and its exit status.
const STATUS_LAG: Duration = Duration::from_millis(500);

impl Child {
    /// Starts a program, inside a tokio runtime with I/O and time enabled.
    pub fn spawn(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        Self::command(program).args(args).spawn()
    }

    /// Builds a command with options.
    pub fn command(program: impl AsRef<OsStr>) -> ChildCommand {
        ChildCommand::new(program.as_ref())
    }

    fn start(command: ChildCommand) -> io::Result<Self> {
        let (stream, kept) = keeper::start(&command)?;
        let over = kept.over();
        let end = OutputState::Open(Box::pin(async {
            over.await;
            sleep(STATUS_LAG).await;
        }));
        Ok(Self { command, kept, stream: Some(stream), end, closing: None })
    }

    /// Returns the process id, which is also the id of the process group.
    pub fn id(&self) -> u32 {
        self.kept.id()
    }

    /// Returns the exit status, once the process has exited.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.exit()?.status
    }

    /// Returns how the process ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.kept.exit()
    }

    /// Returns the last lines of its standard error in backticks, with the error message first, if they are captured
    /// ([`Stderr::Lines`]).
    pub fn last_words(&self) -> Option<String> {
        self.kept.last_words()
    }

    /// Describes how the process exited, once it has: ``the server `uvx` exited with status 3``.
    ///
    /// The last lines of its standard error are quoted if they are captured ([`Stderr::Lines`]), with the error message first.
    pub fn describe_exit(&self) -> Option<String> {
        let exit = self.exit()?;
        let program = self.command.shown();
        Some(match self.last_words() {
            Some(words) => format!("the server `{program}` {exit}; its last output: {words}"),
            None => format!("the server `{program}` {exit}"),
        })
    }

    /// Ends the process and all it started, and waits until they are gone.
    ///
    /// There are three stages, each as long as the [grace](ChildCommand::grace): its input is closed, then its process group is sent
    /// `SIGTERM`, then `SIGKILL`. Further output is discarded. On systems without signals it is killed after the first stage.
    pub async fn shutdown(mut self) -> Exit {
        self.close();
        self.kept.over().await
    }

    /// Starts the same command again, in place of the process that was started before, which is ended in the background.
    pub fn restart(&mut self) -> io::Result<()> {
        *self = Self::start(self.command.clone())?;
        Ok(())
    }

    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.kept.end(stream.into_reader());
        }
    }
}

/// How a child process ended.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Exit {
    /// The status; `None` if the system did not report it, or the process could not be killed.
    pub status: Option<ExitStatus>,
    /// The stage that ended the process and its process group.
    pub stage: Stage,
}

/// The stages of ending a child process.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Stage {
    /// The process exited by itself.
    Exited,
    /// The process exited after its input was closed.
    Closed,
    /// The process, or one of its group, was sent `SIGTERM`.
    Terminated,
    /// The process, or one of its group, was sent `SIGKILL`.
    Killed,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(status) = self.status else { return f.write_str("ended in an unknown way") };
        if let Some(code) = status.code() {
            return write!(f, "exited with status {code}");
        }
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return write!(f, "was ended by signal {signal}");
        }
        write!(f, "ended with {status}")
    }
}

impl Transport for Child {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        loop {
            match &mut self.end {
                OutputState::Open(over) => {
                    let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(None)) };
                    match stream.poll_recv(cx) {
                        Poll::Ready(Ok(None)) => {
                            let exited = self.kept.exited();
                            self.end = OutputState::Awaited(Box::pin(async {
                                // One that closed its output and lives on has ended the conversation all the same.
                                let _ = timeout(STATUS_LAG, exited).await;
                            }));
                        }
                        Poll::Ready(received) => return Poll::Ready(received),
                        Poll::Pending => {
                            ready!(over.as_mut().poll(cx));
                            self.end = OutputState::Here;
                        }
                    }
                }
                OutputState::Awaited(status) => {
                    ready!(status.as_mut().poll(cx));
                    self.end = OutputState::Here;
                }
                OutputState::Here => return Poll::Ready(Ok(None)),
            }
        }
    }

    fn send(&mut self, message: Bytes) {
        if let Some(stream) = &mut self.stream {
            stream.send(message);
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => stream.poll_flush(cx),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        let closing = self.closing.get_or_insert_with(|| Box::pin(self.kept.over()));
        ready!(closing.as_mut().poll(cx));
        self.closing = None;
        Poll::Ready(Ok(()))
    }

    fn close_reason(&self) -> Option<String> {
        self.describe_exit()
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl DrivenTransport for Child {
    fn kind(&self) -> TransportKind {
        TransportKind::Child
    }

    fn ended_unread(&self) -> bool {
        let Some(stream) = &self.stream else { return false };
        self.kept.exit().is_some() && self.kept.unread() == Some(stream.written())
    }

    fn limit_messages(&mut self, bytes: usize) {
        // Also for when it is started again.
        let limit = *self.command.limit.get_or_insert(bytes);
        if let Some(stream) = &mut self.stream {
            stream.limit_messages(limit);
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        Self::restart(self)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.close();
        if Handle::try_current().is_err() {
            // The runtime that keeps it may never be driven again.
            self.kept.kill();
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("id", &self.id())
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}
