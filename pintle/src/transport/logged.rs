use std::{
    fmt, io,
    net::SocketAddr,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use pintle_types::RequestId;

use super::{
    DeadlinePauses, Driven, DrivenTransport, Failed, Incoming, MessageContext, PushDemand, PushState,
    StreamPause, Transport, TransportKind, driven,
};
use crate::message_log::{ConnectionLog, Direction, MessageLog, Side};

/// A transport whose messages are logged. Created by [`MessageLog::wrap`].
///
/// ```
/// use pintle::{message_log::{MessageLog, Side}, transport::memory};
///
/// let (server_side, client_side) = memory();
/// let client_side = MessageLog::to_writer(std::io::stderr()).wrap(Side::Client, client_side);
/// ```
pub struct LoggedTransport {
    transport: Box<dyn DrivenTransport>,
    /// `None` if the transport logs its messages itself.
    log: Option<ConnectionLog>,
}

impl MessageLog {
    /// Returns a transport whose messages are logged. For one connection, or between two programs; `side` is the side of the
    /// protocol that uses the transport.
    pub fn wrap(&self, side: Side, transport: impl Transport) -> LoggedTransport {
        LoggedTransport::new(self, side, driven(transport))
    }
}

impl LoggedTransport {
    pub(crate) fn new(log: &MessageLog, side: Side, mut transport: Box<dyn DrivenTransport>) -> Self {
        let log = ConnectionLog::new(log, side, transport.kind(), transport.peer_address());
        let taken = transport.log_messages(&log);
        Self { transport, log: (!taken).then_some(log) }
    }

    fn log_out(&self, message: &[u8]) {
        if let Some(log) = &self.log {
            log.message(Direction::Out, message);
        }
    }
}

impl Transport for LoggedTransport {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        let incoming = ready!(self.transport.poll_recv(cx))?;
        if let Some(log) = &self.log {
            match &incoming {
                Some(Incoming::Message(message)) => log.message(Direction::In, message),
                Some(Incoming::Oversized(_)) => log.oversized(Direction::In),
                Some(Incoming::Failed(_)) | None => {}
            }
        }
        Poll::Ready(Ok(incoming))
    }

    fn send(&mut self, message: Bytes) {
        self.log_out(&message);
        self.transport.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.poll_close(cx)
    }

    fn close_reason(&self) -> Option<String> {
        self.transport.close_reason()
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl DrivenTransport for LoggedTransport {
    fn limit_messages(&mut self, bytes: usize) {
        self.transport.limit_messages(bytes);
    }

    fn kind(&self) -> TransportKind {
        self.transport.kind()
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.transport.peer_address()
    }

    fn is_local(&self) -> bool {
        self.transport.is_local()
    }

    fn ended_unread(&self) -> bool {
        self.transport.ended_unread()
    }

    fn restart(&mut self) -> io::Result<()> {
        self.transport.restart()
    }

    fn send_with(&mut self, message: Bytes, context: MessageContext<'_>) {
        self.log_out(&message);
        self.transport.send_with(message, context);
    }

    fn has_headers(&self) -> bool {
        self.transport.has_headers()
    }

    fn abandon(&mut self, request: &RequestId) -> bool {
        self.transport.abandon(request)
    }

    fn answered(&mut self, request: &RequestId) {
        self.transport.answered(request);
    }

    fn stream_request(&self) -> Option<&RequestId> {
        self.transport.stream_request()
    }

    fn take_stream_pause(&mut self) -> Option<StreamPause> {
        self.transport.take_stream_pause()
    }

    fn poll_sse_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        self.transport.poll_sse_endpoints(cx)
    }

    fn deadline_pauses(&self) -> DeadlinePauses {
        self.transport.deadline_pauses()
    }

    fn defer_pushes(&mut self, demand: &PushDemand) {
        self.transport.defer_pushes(demand);
    }

    fn push_state(&self) -> PushState {
        self.transport.push_state()
    }
}

impl fmt::Debug for LoggedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedTransport").field("transport", &self.transport).finish_non_exhaustive()
    }
}
