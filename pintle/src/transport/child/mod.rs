mod command;
mod group;
mod keeper;
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

use super::{Driven, DrivenTransport, Incoming, Stream, Transport};
use keeper::Kept;

pub use command::ChildCommand;
pub use stderr::Stderr;

/// A server started as a child process, spoken to on its standard streams.
///
/// It runs in a process group of its own and sees only the harmless part of this process's environment, unless told
/// otherwise: see [`Child::command`]. However it ends, it ends whole: when the process exits, is shut down or this is
/// dropped, so are the processes that it started and that stayed in its group.
///
/// Dropping closes its input and leaves it to a task in the background to see that it ends. If the runtime stops
/// before that, or it is dropped outside of one, it is killed on the spot. To be sure that it had its time, wait for
/// [`shutdown`](Self::shutdown).
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
    end: End,
    closing: Option<Pin<Box<dyn Future<Output = Exit> + Send>>>,
}

/// How far the end of the output is.
enum End {
    /// Messages may come, until this is ready: then the process is gone and had time to be heard. Usually its output
    /// ends before that, but one that left the group may hold it open.
    Open(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It ended; the status comes a moment later.
    Awaited(Pin<Box<dyn Future<Output = ()> + Send>>),
    Here,
}

/// How far apart the end of a child's output and the news of its exit may be.
const STATUS_LAG: Duration = Duration::from_millis(500);

impl Child {
    /// Starts a program, inside a tokio runtime with I/O and time enabled.
    pub fn spawn(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        Self::command(program).args(args).spawn()
    }

    /// A program to start, with all there is to say about how.
    pub fn command(program: impl AsRef<OsStr>) -> ChildCommand {
        ChildCommand::new(program.as_ref())
    }

    fn start(command: ChildCommand) -> io::Result<Self> {
        let (stream, kept) = keeper::start(&command)?;
        let over = kept.over();
        let end = End::Open(Box::pin(async {
            over.await;
            sleep(STATUS_LAG).await;
        }));
        Ok(Self { command, kept, stream: Some(stream), end, closing: None })
    }

    /// The process id. It is also the id of the process group.
    pub fn id(&self) -> u32 {
        self.kept.id()
    }

    /// How the process exited, once it has.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.kept.exit()?.status
    }

    /// How the process exited, once it has, in words: ``the server `uvx` exited with status 3``.
    ///
    /// The last lines of its standard error are quoted if that is read here ([`Stderr::Lines`]), with the one that says
    /// what went wrong first.
    pub fn describe_exit(&self) -> Option<String> {
        let exit = self.kept.exit()?;
        let program = self.command.shown();
        Some(match self.kept.last_words() {
            Some(words) => format!("the server `{program}` {exit}; its last words: {words}"),
            None => format!("the server `{program}` {exit}"),
        })
    }

    /// Ends the process and all it started, and waits until they are gone.
    ///
    /// It is asked in stages, each as long as the [grace](ChildCommand::grace): its input is closed, then its group is
    /// sent `SIGTERM`, then `SIGKILL`. What it still says is thrown away. Where there are no signals it is killed when
    /// it does not end by itself.
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
    /// The status; `None` where the system did not tell, or the process could not even be killed.
    pub status: Option<ExitStatus>,
    /// What it took, for it and for all it started.
    pub stage: Stage,
}

/// What it took to end a child process.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Stage {
    /// Nothing: it exited by itself.
    Exited,
    /// Its input was closed.
    Closed,
    /// It, or something it started, was told to go (`SIGTERM`).
    Terminated,
    /// It, or something it started, was killed (`SIGKILL`).
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
                End::Open(over) => {
                    let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(None)) };
                    match stream.poll_recv(cx) {
                        Poll::Ready(Ok(None)) => {
                            let exited = self.kept.exited();
                            self.end = End::Awaited(Box::pin(async {
                                // One that closed its output and lives on has ended the conversation all the same.
                                let _ = timeout(STATUS_LAG, exited).await;
                            }));
                        }
                        Poll::Ready(received) => return Poll::Ready(received),
                        Poll::Pending => {
                            ready!(over.as_mut().poll(cx));
                            self.end = End::Here;
                        }
                    }
                }
                End::Awaited(status) => {
                    ready!(status.as_mut().poll(cx));
                    self.end = End::Here;
                }
                End::Here => return Poll::Ready(Ok(None)),
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
