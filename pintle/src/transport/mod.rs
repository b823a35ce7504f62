//! How messages get from one side to the other.
//!
//! A [`Transport`] moves whole messages and knows nothing of what they say. Most are made from a byte stream
//! ([`Stream`]); a custom one is three verbs, and [`channels`] makes one of two queues for those who would rather write
//! `async` code. The [`kit`] checks one that you wrote; [`Record`] shows what passes through any of them.

mod about;
mod channels;
#[cfg(feature = "child")]
mod child;
mod failed;
mod holdups;
pub mod kit;
mod listening;
mod memory;
mod oversized;
mod record;
#[cfg(feature = "net")]
mod socket;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
#[cfg(feature = "stdio")]
mod threads;

use std::{
    fmt, io,
    task::{Context, Poll},
};

use bytes::Bytes;
use pintle_types::RequestId;

pub use about::About;
pub use channels::{Channels, channels};
#[cfg(feature = "child")]
pub use child::{Child, ChildCommand, Exit, Stage, Stderr};
pub use failed::{Delivery, Failed};
pub use holdups::{Holdup, Holdups};
pub use listening::Listening;
pub use memory::{Memory, memory};
pub use oversized::{Oversized, Skipped};
pub use record::{Direction, Record, Recorded};
#[cfg(feature = "net")]
pub use socket::{Listener, listen_tcp, tcp};
#[cfg(all(feature = "net", unix))]
pub use socket::{listen_unix, unix};
#[cfg(feature = "stdio")]
pub use stdio::Stdio;
pub use stream::Stream;

/// A connection that carries whole messages, both ways at once.
///
/// Three verbs: [`send`](Self::send) queues, [`poll_flush`](Self::poll_flush) writes, [`poll_recv`](Self::poll_recv)
/// reads. They are polled by one task, so that reading goes on while a slow peer makes writing wait; dropping the
/// transport closes it. The rest is for transports that are more than a pipe, and may be left as it is.
///
/// One that counts what passes through another:
///
/// ```
/// use std::{io, task::{Context, Poll}};
/// use bytes::Bytes;
/// use pintle::transport::{Incoming, Transport};
///
/// #[derive(Debug)]
/// struct Counting<T> {
///     inner: T,
///     bytes: usize,
/// }
///
/// impl<T: Transport> Transport for Counting<T> {
///     fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
///         self.inner.poll_recv(cx)
///     }
///
///     fn send(&mut self, message: Bytes) {
///         self.bytes += message.len();
///         self.inner.send(message);
///     }
///
///     fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         self.inner.poll_flush(cx)
///     }
/// }
/// # let _ = |inner: pintle::transport::Memory| Counting { inner, bytes: 0 }.bytes;
/// ```
pub trait Transport: fmt::Debug + Send + 'static {
    /// Takes the next message that came in, or `None` at the end.
    ///
    /// Nothing may be lost when the caller stops polling and comes back later. Whoever was told to wait is woken when there
    /// is something, also if it came while something was sent.
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>>;

    /// Queues a message: JSON on one line, without the line's end.
    ///
    /// Never waits. Whoever sends sees to it that not too much is queued, and flushes.
    fn send(&mut self, message: Bytes);

    /// Writes what is queued. Ready when nothing is left.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Closes the connection and waits until all that belongs to it is gone, such as a child process.
    ///
    /// Nothing is sent or received afterwards. Without it, dropping the transport closes it in the background.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }

    /// Says why the connection ended, for the error that people see, if more is known than that it did.
    fn why_ended(&self) -> Option<String> {
        None
    }

    /// Whether the peer is known to have ended without reading anything of what was sent.
    ///
    /// Then no message of ours was the reason, and a client does not start it again to ask it otherwise. `false` where
    /// that is unknown.
    fn ended_unread(&self) -> bool {
        false
    }

    /// Opens the same connection anew, as it was in the beginning.
    ///
    /// A client needs it for servers that die of a question they do not know. An error, and nothing has changed, where
    /// the transport cannot: most cannot.
    fn restart(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Queues a message of which more is known than its bytes. HTTP says some of that once more in its headers.
    fn send_about(&mut self, message: Bytes, _about: About<'_>) {
        self.send(message);
    }

    /// Whether [`About::headers`] go anywhere: then the client finds out which arguments to repeat there.
    fn has_headers(&self) -> bool {
        false
    }

    /// Nobody waits for the answer to this request any more. Says whether the peer learns of that by itself, as from a
    /// stream that is closed; else a message has to tell it.
    fn abandon(&mut self, _request: &RequestId) -> bool {
        false
    }

    /// The answer to this request has come. Of use to whoever would otherwise say that there is none.
    fn answered(&mut self, _request: &RequestId) {}

    /// The request on whose own stream the last message came, where requests have streams of their own. What a server asks
    /// there it asks for that request.
    fn stream_of(&self) -> Option<&RequestId> {
        None
    }

    /// Looks for the two endpoints of the oldest HTTP transport, and uses them from then on.
    ///
    /// # Errors
    ///
    /// There are none, or what came instead.
    fn poll_two_endpoints(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        Poll::Ready(Err(Box::new(Failed::new("only HTTP has endpoints"))))
    }

    /// Whether only the user who runs this process can be at the other end: a pipe, a socket in a file of theirs, memory.
    ///
    /// A server lets such a peer do everything. `false` unless the transport says so: who is not known to be local is
    /// nobody.
    fn is_local(&self) -> bool {
        false
    }

    /// When the time that passes is not the peer's, such as while a user logs in.
    fn holdups(&self) -> Holdups {
        Holdups::new()
    }

    /// Takes messages of up to this many bytes, unless it was given a limit of its own when it was made. Whoever drives it
    /// says so before anything is read; larger ones are [`Incoming::Oversized`].
    fn limit_messages(&mut self, _bytes: usize) {}

    /// Whether messages that belong to no request can arrive: always, unless they need a stream of their own.
    fn listening(&self) -> Listening {
        Listening::always()
    }
}

/// What came in.
#[expect(clippy::exhaustive_enums, reason = "a message, one that nobody wants to hold, or none for good")]
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A message, not looked at.
    Message(Bytes),
    /// A message of more bytes than are taken. It was skipped; the next one is whole again.
    Oversized(Oversized),
    /// A request of ours will have no answer, and the connection goes on. Of no meaning if the answer came before.
    Failed(Box<Failed>),
}

impl Incoming {
    /// A message that came whole, unless it is too long.
    fn within(message: Bytes, limit: usize) -> Self {
        if message.len() > limit {
            return Self::Oversized(Oversized::of(&message, limit));
        }
        Self::Message(message)
    }
}

impl Transport for Box<dyn Transport> {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        (**self).poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        (**self).send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_close(cx)
    }

    fn why_ended(&self) -> Option<String> {
        (**self).why_ended()
    }

    fn ended_unread(&self) -> bool {
        (**self).ended_unread()
    }

    fn restart(&mut self) -> io::Result<()> {
        (**self).restart()
    }

    fn send_about(&mut self, message: Bytes, about: About<'_>) {
        (**self).send_about(message, about);
    }

    fn has_headers(&self) -> bool {
        (**self).has_headers()
    }

    fn abandon(&mut self, request: &RequestId) -> bool {
        (**self).abandon(request)
    }

    fn answered(&mut self, request: &RequestId) {
        (**self).answered(request);
    }

    fn stream_of(&self) -> Option<&RequestId> {
        (**self).stream_of()
    }

    fn poll_two_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        (**self).poll_two_endpoints(cx)
    }

    fn is_local(&self) -> bool {
        (**self).is_local()
    }

    fn holdups(&self) -> Holdups {
        (**self).holdups()
    }

    fn limit_messages(&mut self, bytes: usize) {
        (**self).limit_messages(bytes);
    }

    fn listening(&self) -> Listening {
        (**self).listening()
    }
}
