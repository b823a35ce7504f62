use std::{
    fmt, io,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use pintle_types::RequestId;

use super::{
    Failed, Incoming, Transport,
    deadline_pauses::DeadlinePauses,
    driven::{Driven, DrivenTransport, MessageContext, driven},
    push_state::PushState,
};

/// A transport that records every message that passes through it, for debugging.
///
/// ```
/// use pintle::transport::{Record, memory};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (server_side, client_side) = memory();
/// // As lines, on standard error:
/// let client_side = Record::to_writer(client_side, std::io::stderr());
/// // Or to code of your own:
/// let (seen, mut heard) = tokio::sync::mpsc::unbounded_channel();
/// let server_side = Record::new(server_side, move |recorded| drop(seen.send(recorded.to_string())));
/// # #[cfg(all(feature = "client", feature = "server"))] {
/// # let _serving = pintle::Server::new("demo", "1.0.0").serve(server_side)?;
/// # let _server = pintle::Client::new("demo", "1.0.0").connect(client_side).await?;
/// assert!(heard.recv().await.unwrap().contains("server/discover"));
/// # }
/// # Ok(()) }
/// ```
pub struct Record {
    transport: Box<dyn DrivenTransport>,
    sink: Box<dyn FnMut(Recorded<'_>) + Send>,
    number: u64,
}

/// A message that passed through a [`Record`]. Prints as one line of bounded length.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Recorded<'a> {
    /// The number of the message, from 1, counted over both directions.
    pub number: u64,
    /// The direction.
    pub direction: Direction,
    /// The message; `None` if it exceeded the limit.
    pub message: Option<&'a [u8]>,
}

/// The direction of a message.
#[expect(clippy::exhaustive_enums, reason = "a connection has two directions")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From this side to the peer.
    Out,
    /// From the peer to this side.
    In,
}

/// How much of a message is printed.
const SHOWN: usize = 4 << 10;

impl Record {
    /// Shows each message to a function: one that goes out when it is queued, one that comes in when it is taken.
    pub fn new(transport: impl Transport, sink: impl FnMut(Recorded<'_>) + Send + 'static) -> Self {
        Self { transport: driven(transport), sink: Box::new(sink), number: 0 }
    }

    /// Writes each message as a line, `1 → {…}` or `2 ← {…}`, at most 4 KiB of it.
    ///
    /// A writer that fails is no reason to end the connection: what it cannot take is not recorded.
    pub fn to_writer(transport: impl Transport, mut writer: impl io::Write + Send + 'static) -> Self {
        Self::new(transport, move |recorded| {
            let _ = writeln!(writer, "{recorded}").and_then(|()| writer.flush());
        })
    }

    fn show(&mut self, direction: Direction, message: Option<&[u8]>) {
        self.number += 1;
        (self.sink)(Recorded { number: self.number, direction, message });
    }
}

impl Transport for Record {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        let incoming = ready!(self.transport.poll_recv(cx))?;
        match &incoming {
            Some(Incoming::Message(message)) => self.show(Direction::In, Some(message)),
            Some(Incoming::Oversized(_)) => self.show(Direction::In, None),
            Some(Incoming::Failed(_)) | None => {}
        }
        Poll::Ready(Ok(incoming))
    }

    fn send(&mut self, message: Bytes) {
        self.show(Direction::Out, Some(&message));
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

impl DrivenTransport for Record {
    fn limit_messages(&mut self, bytes: usize) {
        self.transport.limit_messages(bytes);
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
        self.show(Direction::Out, Some(&message));
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

    fn poll_sse_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        self.transport.poll_sse_endpoints(cx)
    }

    fn deadline_pauses(&self) -> DeadlinePauses {
        self.transport.deadline_pauses()
    }

    fn push_state(&self) -> PushState {
        self.transport.push_state()
    }
}

impl fmt::Display for Recorded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.direction {
            Direction::Out => '→',
            Direction::In => '←',
        };
        write!(f, "{} {arrow} ", self.number)?;
        let Some(message) = self.message else { return f.write_str("(too long to be taken)") };
        let shown = &message[..message.len().min(SHOWN)];
        // Whatever a peer sends, a line stays a line and a terminal keeps its colours.
        for c in String::from_utf8_lossy(shown).chars() {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { fmt::Write::write_char(f, c)? }
        }
        match message.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, "… ({more} bytes more)"),
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("transport", &self.transport)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: Option<&[u8]>) -> String {
        Recorded { number: 7, direction: Direction::In, message }.to_string()
    }

    #[test]
    fn a_message_prints_as_one_bounded_line() {
        assert_eq!(line(Some(br#"{"a":1}"#)), r#"7 ← {"a":1}"#);
        assert_eq!(line(Some(b"a\n\x1b[31mb\xff")), "7 ← a\\n\\u{1b}[31mb\u{fffd}");
        assert_eq!(line(None), "7 ← (too long to be taken)");
        let long = line(Some(&[b'x'; SHOWN + 3]));
        assert!(long.ends_with("x… (3 bytes more)") && long.len() < SHOWN + 100, "{long}");
    }
}
