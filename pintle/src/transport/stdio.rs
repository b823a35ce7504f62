use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::runtime::Handle;

use super::{Driven, DrivenTransport, Incoming, Stream, Transport, TransportKind};

/// The process's own standard streams: how a server talks to the host that started it.
///
/// It takes them for itself. From then on standard output leads to standard error and standard input is empty for
/// everyone else, so a stray `println!`, a C library or a child process can neither write into the conversation nor
/// swallow a part of it. (Where standard error is the very same pipe, as after `2>&1`, it is silenced too.) There is one
/// to a process, and dropping it gives nothing back: what was redirected stays so.
///
/// Only on Unix. Elsewhere the streams are used as they are, and nothing else may print.
///
/// ```no_run
/// use pintle::transport::Stdio;
///
/// # #[cfg(feature = "server")]
/// # async fn serve() -> pintle::Result<()> {
/// let transport = Stdio::new()?;
/// println!("this goes to standard error");
/// pintle::Server::new("demo", "1.0.0").serve(transport)?.wait().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Stdio {
    stream: Stream,
    /// Dropped after the stream, so that what others share is as blocking as they left it.
    #[cfg(unix)]
    _modes: [Option<unix::Mode>; 2],
}

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Stdio {
    /// Takes the standard streams, inside a tokio runtime with I/O enabled.
    ///
    /// An error if they are taken already.
    pub fn new() -> io::Result<Self> {
        if Handle::try_current().is_err() {
            return Err(io::Error::other("`Stdio::new` needs a tokio runtime: call it in an `async fn`"));
        }
        if TAKEN.swap(true, Ordering::AcqRel) {
            let why = "the standard streams are taken: there is one `Stdio` to a process, made once";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Self::take().inspect_err(|_| TAKEN.store(false, Ordering::Release))
    }

    /// Sets the maximum size of a received message, instead of `Limits::message_bytes`.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.stream = self.stream.limit(bytes);
        self
    }

    #[cfg(not(unix))]
    fn take() -> io::Result<Self> {
        use super::threads;
        Ok(Self { stream: Stream::new(threads::reader(io::stdin())?, threads::writer(io::stdout())?) })
    }
}

impl Transport for Stdio {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        self.stream.poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        self.stream.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close(cx)
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl DrivenTransport for Stdio {
    fn kind(&self) -> TransportKind {
        TransportKind::Stdio
    }

    fn is_local(&self) -> bool {
        true
    }

    fn limit_messages(&mut self, bytes: usize) {
        self.stream.limit_messages(bytes);
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        fs::{self, File},
        io::{self, IsTerminal},
        os::{
            fd::{AsFd, AsRawFd, OwnedFd},
            unix::{
                fs::{FileTypeExt, MetadataExt},
                net::UnixStream as StdUnixStream,
            },
        },
    };

    use rustix::{
        fs::{Mode as RawMode, OFlags, fcntl_getfl, fcntl_setfl},
        stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
    };
    use tokio::net::{UnixStream, unix::pipe};

    use super::Stdio;
    use crate::transport::{
        Stream,
        stream::{BoxReader, BoxWriter},
        threads,
    };

    impl Stdio {
        pub(super) fn take() -> io::Result<Self> {
            let input = io::stdin().as_fd().try_clone_to_owned()?;
            let output = io::stdout().as_fd().try_clone_to_owned()?;
            let nothing = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
            let deaf = same(&output, &io::stderr())? && !io::stderr().is_terminal();
            let (input, output) = (Own::of(input, OFlags::RDONLY)?, Own::of(output, OFlags::WRONLY)?);
            let stream = Stream::boxed(reader(input.file)?, writer(output.file)?);
            // Nothing is redirected before all that can fail has not.
            dup2_stdin(&nothing)?;
            if deaf {
                dup2_stdout(&nothing)?;
                dup2_stderr(&nothing)?;
            } else {
                dup2_stdout(io::stderr())?;
            }
            Ok(Self { stream, _modes: [input.mode, output.mode] })
        }
    }

    /// A descriptor that may be made not to block.
    struct Own {
        file: OwnedFd,
        /// How it was, if others share it.
        mode: Option<Mode>,
    }

    impl Own {
        /// Opens a pipe once more, where the system can (Linux). Whether an open file blocks is the same for all who hold
        /// it, and a process that is ended by a signal puts nothing back: a shell or another program at the same end of
        /// the pipe would find it changed.
        fn of(file: OwnedFd, access: OFlags) -> io::Result<Self> {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            // Not one with a name in the file system: whoever opens that after its last writer left is not told so.
            let anonymous = || {
                fs::read_link(&path).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"pipe:"))
            };
            if cfg!(target_os = "linux") && anonymous() {
                let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
                // It fails without `/proc`, and if the pipe is another user's.
                if let Ok(file) = rustix::fs::open(path, flags, RawMode::empty()) {
                    return Ok(Self { file, mode: None });
                }
            }
            Ok(Self { mode: Some(Mode::of(&file)?), file })
        }
    }

    /// How a descriptor was, to be put back: others may hold the same open file, and expect it to block.
    #[derive(Debug)]
    pub(super) struct Mode {
        file: OwnedFd,
        flags: OFlags,
    }

    impl Mode {
        fn of(file: &OwnedFd) -> io::Result<Self> {
            Ok(Self { file: file.try_clone()?, flags: fcntl_getfl(file)? })
        }
    }

    impl Drop for Mode {
        fn drop(&mut self) {
            let Ok(flags) = fcntl_getfl(&self.file) else { return };
            if flags.contains(OFlags::NONBLOCK) && !self.flags.contains(OFlags::NONBLOCK) {
                // Nobody is left to tell.
                let _ = fcntl_setfl(&self.file, flags - OFlags::NONBLOCK);
            }
        }
    }

    fn reader(fd: OwnedFd) -> io::Result<BoxReader> {
        Ok(match Kind::of(&fd)? {
            Kind::Pipe => Box::pin(pipe::Receiver::from_owned_fd(fd)?),
            Kind::Socket(socket) => Box::pin(socket),
            Kind::Other => Box::pin(threads::reader(File::from(fd))?),
        })
    }

    fn writer(fd: OwnedFd) -> io::Result<BoxWriter> {
        Ok(match Kind::of(&fd)? {
            Kind::Pipe => Box::pin(pipe::Sender::from_owned_fd(fd)?),
            Kind::Socket(socket) => Box::pin(socket),
            Kind::Other => Box::pin(threads::writer(File::from(fd))?),
        })
    }

    /// The kinds of descriptors that hosts pass as standard streams.
    enum Kind {
        Pipe,
        /// As passed by Node.
        Socket(UnixStream),
        /// Terminals and files: they cannot be polled, or are shared with a shell that needs them blocking.
        Other,
    }

    impl Kind {
        fn of(fd: &OwnedFd) -> io::Result<Self> {
            let kind = File::from(fd.try_clone()?).metadata()?.file_type();
            if kind.is_fifo() {
                return Ok(Self::Pipe);
            }
            if kind.is_socket() {
                let socket = StdUnixStream::from(fd.try_clone()?);
                // Only a Unix socket has an address of that kind.
                if socket.local_addr().is_ok() {
                    socket.set_nonblocking(true)?;
                    return Ok(Self::Socket(UnixStream::from_std(socket)?));
                }
            }
            Ok(Self::Other)
        }
    }

    fn same(one: &impl AsFd, other: &impl AsFd) -> io::Result<bool> {
        let identity = |fd: &dyn AsFd| -> io::Result<(u64, u64)> {
            let metadata = File::from(fd.as_fd().try_clone_to_owned()?).metadata()?;
            Ok((metadata.dev(), metadata.ino()))
        };
        Ok(identity(one)? == identity(other)?)
    }
}
