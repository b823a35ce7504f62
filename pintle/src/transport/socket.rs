use std::{fmt::Display, io, net::SocketAddr};

use tokio::net::{TcpListener, TcpStream};

use super::{Stream, TransportKind};

/// Connects to a server that listens on TCP, at an address like `localhost:8080` or a [`SocketAddr`].
///
/// There is neither encryption nor a login here: it is for the own machine, or for inside a tunnel. For TLS, hand the
/// halves of a TLS stream to [`Stream::new`].
///
/// ```
/// use pintle::transport::{listen_tcp, tcp};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let mut listener = listen_tcp("127.0.0.1:0").await?;
/// let client_side = tcp(listener.address().expect("of TCP")).await?;
/// let server_side = listener.accept().await?;
/// # drop((client_side, server_side));
/// # Ok(()) }
/// ```
pub async fn tcp(address: impl Display) -> io::Result<Stream> {
    over_tcp(TcpStream::connect(address.to_string()).await?)
}

/// Listens on TCP. Anyone who can reach the address can connect, so use a loopback address.
///
/// Clients are anonymous to a server: what [requires](crate::server::ToolRoute::requires) rights is refused, unless
/// `Server::serve_to` names the principal.
pub async fn listen_tcp(address: impl Display) -> io::Result<Listener> {
    Ok(Listener { socket: Socket::Tcp(TcpListener::bind(address.to_string()).await?) })
}

/// Connects to a server that listens on a Unix socket.
#[cfg(unix)]
pub async fn unix(path: impl AsRef<std::path::Path>) -> io::Result<Stream> {
    over_unix(tokio::net::UnixStream::connect(path).await?)
}

/// Listens on a Unix socket that only this user may connect to (mode 0600).
///
/// A server treats every client as this user, with all rights. If others can open the file, because its mode was changed, name
/// the principal with `Server::serve_to`.
///
/// The file is removed when the listener is dropped. A stale file of a crashed server is replaced; a file that is in use is an
/// error.
///
/// ```
/// use pintle::transport::{listen_unix, unix};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let path = std::env::temp_dir().join(format!("pintle-doc-{}.sock", std::process::id()));
/// let mut listener = listen_unix(&path)?;
/// let client_side = unix(&path).await?;
/// let server_side = listener.accept().await?;
/// # drop((client_side, server_side));
/// drop(listener);
/// assert!(!path.exists());
/// # Ok(()) }
/// ```
#[cfg(unix)]
pub fn listen_unix(path: impl AsRef<std::path::Path>) -> io::Result<Listener> {
    Ok(Listener { socket: Socket::Unix(file::Listening::at(path.as_ref())?) })
}

/// A listener for connections of newline-delimited messages.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(file::Listening),
}

impl Listener {
    /// Waits for the next connection. May be dropped and called again; none is lost.
    ///
    /// An error does not end the listener: it is about one connection, or about a process that has too many files open.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Tcp(listener) => over_tcp(listener.accept().await?.0),
            #[cfg(unix)]
            Socket::Unix(file) => over_unix(file.listener().accept().await?.0),
        }
    }

    /// The address listened on, with the port that was chosen for port 0; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Socket::Unix(_) => None,
        }
    }
}

fn over_tcp(socket: TcpStream) -> io::Result<Stream> {
    // Messages are written whole: there is nothing to wait for that would fill the packet.
    socket.set_nodelay(true)?;
    let address = socket.peer_addr();
    let (reader, writer) = socket.into_split();
    let stream = Stream::new(reader, writer).of_kind(TransportKind::Tcp);
    // A socket whose peer has disconnected already has no address.
    Ok(match address {
        Ok(address) => stream.peer_address(address),
        Err(_) => stream,
    })
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "as `over_tcp`")]
fn over_unix(socket: tokio::net::UnixStream) -> io::Result<Stream> {
    let (reader, writer) = socket.into_split();
    Ok(Stream::new(reader, writer).of_kind(TransportKind::Unix).local())
}

#[cfg(unix)]
mod file {
    use std::{
        fs::{self, Permissions},
        io,
        os::unix::{
            fs::{FileTypeExt, MetadataExt, PermissionsExt},
            net::{UnixListener as StdUnixListener, UnixStream},
        },
        path::{Path, PathBuf},
    };

    use rustix::{
        io::{FdFlags, fcntl_setfd},
        net::{AddressFamily, SocketAddrUnix, SocketType},
    };
    use tokio::net::UnixListener;

    /// A listener and its file.
    #[derive(Debug)]
    pub(super) struct Listening {
        listener: UnixListener,
        path: PathBuf,
        /// Device and number of the file, so that only our own is removed.
        identity: (u64, u64),
    }

    /// How many connections may wait to be accepted.
    const BACKLOG: i32 = 128;

    impl Listening {
        pub(super) fn at(path: &Path) -> io::Result<Self> {
            clear(path)?;
            let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
            fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
            rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            let identity = identity(path)?;
            // Not listening yet, so nobody can have connected before the door was locked.
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            rustix::net::listen(&socket, BACKLOG)?;
            let listener = StdUnixListener::from(socket);
            listener.set_nonblocking(true)?;
            Ok(Self { listener: UnixListener::from_std(listener)?, path: path.into(), identity })
        }

        pub(super) fn listener(&self) -> &UnixListener {
            &self.listener
        }
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
                // Gone already is as good.
                let _ = fs::remove_file(&self.path);
            }
        }
    }

    /// Removes a stale socket file.
    fn clear(path: &Path) -> io::Result<()> {
        let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
        let shown = path.display();
        if !metadata.file_type().is_socket() {
            let why = format!("`{shown}` is there and no socket: remove it or give another path");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            _ => {
                let why = format!("`{shown}` is in use: stop its server or give another path");
                Err(io::Error::new(io::ErrorKind::AddrInUse, why))
            }
        }
    }

    fn identity(path: &Path) -> io::Result<(u64, u64)> {
        let metadata = fs::symlink_metadata(path)?;
        Ok((metadata.dev(), metadata.ino()))
    }
}
