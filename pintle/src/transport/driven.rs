#![cfg_attr(
    not(feature = "http-client"),
    allow(dead_code, reason = "some of it is used by the HTTP client only")
)]

use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use pintle_proto::Revision;
use pintle_types::{Message, RequestId};

use super::{
    Failed, Incoming, Transport, TransportKind, deadline_pauses::DeadlinePauses, push_demand::PushDemand,
    push_state::PushState,
};
use crate::message_log::ConnectionLog;

/// A [`Transport`] as the driver of a connection uses it, with what only the transports of this crate implement.
///
/// [`Transport::into_driven`] makes one of any transport. Methods that are not implemented behave as for a pipe.
pub(crate) trait DrivenTransport: Transport {
    /// Limits incoming messages to this many bytes, unless the transport was created with a limit. Called before anything
    /// is read; larger messages are [`Incoming::Oversized`].
    fn limit_messages(&mut self, bytes: usize);

    /// The kind of the transport.
    fn kind(&self) -> TransportKind {
        TransportKind::Other
    }

    /// The address of the peer, if the transport is a socket and knows it.
    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Logs the messages from now on, if the transport knows more about them than their text. Returns whether it does.
    fn log_messages(&mut self, _log: &ConnectionLog) -> bool {
        false
    }

    /// Whether only the user who runs this process can be at the other end: a pipe, a socket in a file of theirs, memory.
    ///
    /// A server grants such a peer everything, so unknown is `false`.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "servers ask"))]
    fn is_local(&self) -> bool {
        false
    }

    /// Whether the peer is known to have exited without reading anything that was sent.
    ///
    /// In this case no message caused the exit, and a client does not restart the server to ask differently. Unknown is
    /// `false`.
    fn ended_unread(&self) -> bool {
        false
    }

    /// Opens a new connection to the same peer, discarding all state of the previous one.
    ///
    /// # Errors
    ///
    /// The transport cannot reconnect, and nothing has changed.
    fn restart(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Queues a message together with what HTTP repeats in headers.
    fn send_with(&mut self, message: Bytes, _context: MessageContext<'_>) {
        self.send(message);
    }

    /// Whether [`MessageContext::headers`] are sent: if so, the client determines which arguments to mirror there.
    fn has_headers(&self) -> bool {
        false
    }

    /// Stops waiting for the response to a request. Returns whether the peer notices by itself, because a stream is closed;
    /// otherwise a cancellation has to be sent.
    fn abandon(&mut self, _request: &RequestId) -> bool {
        false
    }

    /// Records that the response to a request has arrived, so that the end of its stream is not reported as a failure.
    fn answered(&mut self, _request: &RequestId) {}

    /// The request on whose response stream the last message arrived, where requests have streams of their own.
    fn stream_request(&self) -> Option<&RequestId> {
        None
    }

    /// A stream of a request that the peer ended before the last message, and that is being resumed. To be called after each
    /// [`poll_recv`](Transport::poll_recv), until it returns `None`.
    fn take_stream_pause(&mut self) -> Option<StreamPause> {
        None
    }

    /// Looks for the two endpoints of the HTTP+SSE transport, and uses them from then on.
    ///
    /// # Errors
    ///
    /// The server has none, or answered with something else.
    fn poll_sse_endpoints(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        Poll::Ready(Err(Box::new(Failed::new("only HTTP servers have SSE endpoints"))))
    }

    /// The pauses of deadlines, such as while a user logs in.
    fn deadline_pauses(&self) -> DeadlinePauses {
        DeadlinePauses::new()
    }

    /// Has messages that belong to no request arrive from when they are wanted, if they need a stream of their own. Called before anything
    /// is sent; otherwise they are wanted always.
    fn defer_pushes(&mut self, _demand: &PushDemand) {}

    /// Whether messages that belong to no request can arrive: always, unless they need a stream of their own.
    fn push_state(&self) -> PushState {
        PushState::always()
    }
}

/// A transport that is ready to be driven.
#[expect(unnameable_types, reason = "what only the transports of this crate need is not part of the API")]
#[derive(Debug)]
pub struct Driven(pub(crate) Box<dyn DrivenTransport>);

/// Adapts any transport to the driver of a connection.
pub(crate) fn driven(transport: impl Transport) -> Box<dyn DrivenTransport> {
    Box::new(transport).into_driven().0
}

/// A response stream that the peer ended before the answer, so that no connection is held open for it.
#[derive(Debug)]
pub(crate) struct StreamPause {
    /// The request that it is the stream of.
    pub(crate) request: RequestId,
    /// The time after which it is resumed.
    pub(crate) wait: Duration,
}

/// The context of an outgoing message, for transports that repeat some of it in headers.
#[derive(Debug)]
pub(crate) struct MessageContext<'a> {
    /// The message, or the messages of a batch.
    pub(crate) messages: &'a [Message],
    /// The revision it is written in, once that is negotiated.
    pub(crate) revision: Option<Revision>,
    /// Headers that mirror arguments.
    pub(crate) headers: HeaderMap,
}

impl<'a> MessageContext<'a> {
    pub(crate) fn new(messages: &'a [Message], revision: Option<Revision>) -> Self {
        Self { messages, revision, headers: HeaderMap::new() }
    }
}

/// A transport that implements nothing but [`Transport`]. The limit of a message's size is enforced here.
#[derive(Debug)]
pub(super) struct LimitedTransport<T: ?Sized> {
    limit: usize,
    inner: Box<T>,
}

impl<T: ?Sized> LimitedTransport<T> {
    pub(super) fn new(inner: Box<T>) -> Self {
        Self { limit: usize::MAX, inner }
    }
}

impl<T: Transport + ?Sized> Transport for LimitedTransport<T> {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        let received = ready!(self.inner.poll_recv(cx))?;
        Poll::Ready(Ok(match received {
            Some(Incoming::Message(message)) => Some(Incoming::within(message, self.limit)),
            other => other,
        }))
    }

    fn send(&mut self, message: Bytes) {
        self.inner.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_close(cx)
    }

    fn close_reason(&self) -> Option<String> {
        self.inner.close_reason()
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl<T: Transport + ?Sized> DrivenTransport for LimitedTransport<T> {
    fn limit_messages(&mut self, bytes: usize) {
        self.limit = bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::sync::mpsc;

    use super::*;
    use crate::transport::channels;

    #[test]
    fn the_limit_holds_for_transports_that_know_of_none() {
        let (incoming, received) = mpsc::channel(4);
        let mut transport = driven(channels(received, mpsc::channel(4).0));
        transport.limit_messages(4);
        for message in ["1234", "12345", "1"] {
            incoming.try_send(message.into()).unwrap();
        }
        let mut recv = || match transport.poll_recv(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Some(Incoming::Message(message)))) => message.len(),
            Poll::Ready(Ok(Some(Incoming::Oversized(_)))) => usize::MAX,
            other => panic!("{other:?}"),
        };
        assert_eq!([recv(), recv(), recv()], [4, usize::MAX, 1]);
    }

    #[test]
    fn a_boxed_transport_keeps_what_it_knows() {
        let (boxed, _peer) = crate::transport::memory();
        let boxed: Box<dyn Transport> = Box::new(boxed);
        assert!(driven(boxed).is_local());
    }
}
