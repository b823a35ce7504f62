use std::{
    collections::VecDeque,
    fmt, io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::{Driven, DrivenTransport, Incoming, Transport, TransportKind, oversized::Ends};

/// Messages on a byte stream, one a line.
///
/// Any reader and writer work: sockets, pipes, the two halves of a TLS stream.
///
/// ```
/// use pintle::transport::Stream;
///
/// # async fn connect() -> std::io::Result<()> {
/// let (reader, writer) = tokio::io::split(tokio::io::duplex(1024).0);
/// let transport = Stream::new(reader, writer).limit(1 << 20);
/// # Ok(()) }
/// ```
pub struct Stream {
    reader: BoxReader,
    writer: BoxWriter,
    /// Bytes that were read and not returned yet.
    input: BytesMut,
    /// How many bytes of `input` were searched for a line end, so that a long line is searched once.
    searched: usize,
    /// Expected size of a line that does not end with the first read: that of the last long one. Saves copies while the buffer
    /// is enlarged.
    expected: usize,
    /// Both ends of a line that exceeds the limit. The rest is discarded.
    skipping: Option<Box<Ends>>,
    ended: bool,
    limit: usize,
    /// Whether the limit was set on this stream.
    has_own_limit: bool,
    /// Whether only the same user can be the peer.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "servers ask"))]
    local: bool,
    kind: TransportKind,
    peer: Option<SocketAddr>,
    /// Small messages, gathered for one write.
    gathered: BytesMut,
    /// Messages to be written before `gathered`. Large ones are not copied.
    output: VecDeque<Bytes>,
    dirty: bool,
    /// Number of bytes written.
    #[cfg(feature = "child")]
    written: u64,
}

pub(super) type BoxReader = Pin<Box<dyn AsyncRead + Send>>;
pub(super) type BoxWriter = Pin<Box<dyn AsyncWrite + Send>>;

/// From this size on, messages are not copied.
const LARGE: usize = 16 << 10;
/// Size of a read.
const READ: usize = 64 << 10;
/// Capacity above which a buffer is released after a message.
const KEPT: usize = 4 * READ;
/// The empty lines that are read before other tasks have their turn.
const EMPTY: usize = 1 << 10;
/// Limit of `expected`.
const EXPECTED: usize = 2 << 20;

impl Stream {
    /// Creates a transport. Its message limit is `Limits::message_bytes` of the client or server that uses it.
    pub fn new(reader: impl AsyncRead + Send + 'static, writer: impl AsyncWrite + Send + 'static) -> Self {
        Self::boxed(Box::pin(reader), Box::pin(writer))
    }

    pub(super) fn boxed(reader: BoxReader, writer: BoxWriter) -> Self {
        Self {
            reader,
            writer,
            input: BytesMut::new(),
            searched: 0,
            expected: 0,
            skipping: None,
            ended: false,
            limit: pintle_proto::Limits::default().message_bytes,
            has_own_limit: false,
            local: false,
            kind: TransportKind::Other,
            peer: None,
            gathered: BytesMut::new(),
            output: VecDeque::new(),
            dirty: false,
            #[cfg(feature = "child")]
            written: 0,
        }
    }

    /// Sets the maximum size of a received message, instead of `Limits::message_bytes`.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self.has_own_limit = true;
        self
    }

    /// Sets the address of the peer, for a socket that was accepted by other code, such as a TLS library. Handlers read it with
    /// `Cx::peer_address`.
    #[must_use]
    pub fn peer_address(mut self, address: SocketAddr) -> Self {
        self.peer = Some(address);
        self
    }

    /// Sets the kind of the transport.
    #[cfg(feature = "net")]
    pub(super) fn of_kind(mut self, kind: TransportKind) -> Self {
        self.kind = kind;
        self
    }

    /// How many bytes the writer has taken.
    #[cfg(feature = "child")]
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Nobody but this user can be at the other end.
    #[cfg(all(feature = "net", unix))]
    pub(super) fn local(mut self) -> Self {
        self.local = true;
        self
    }

    /// Closes the way out and gives back the way in.
    #[cfg(feature = "child")]
    pub(super) fn into_reader(self) -> BoxReader {
        self.reader
    }

    /// Returns both ways, without what was gathered for either.
    #[cfg(feature = "child")]
    pub(super) fn into_parts(self) -> (BoxReader, BoxWriter) {
        (self.reader, self.writer)
    }

    /// Puts what was gathered in line for writing.
    fn gather(&mut self) {
        if self.gathered.len() > KEPT {
            self.output.push_back(std::mem::take(&mut self.gathered).freeze());
        } else if !self.gathered.is_empty() {
            self.output.push_back(self.gathered.split().freeze());
        }
    }

    /// Writes everything that was sent.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.gather();
        while let Some(next) = self.output.front_mut() {
            let written = ready!(poll_write_some(self.writer.as_mut(), next, cx))?;
            next.advance(written);
            #[cfg(feature = "child")]
            {
                self.written += written as u64;
            }
            if next.is_empty() {
                self.output.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The next line of what was read, if it is whole. `empty` counts the empty ones before it, up to [`EMPTY`].
    fn line(&mut self, empty: &mut usize) -> Option<Incoming> {
        while *empty < EMPTY {
            let unsearched = self.input.get(self.searched..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', unsearched) else {
                self.searched = self.input.len();
                // One more for a `\r` whose `\n` has not come yet.
                if let Some(ends) = &mut self.skipping {
                    ends.take(&self.input);
                    self.input.clear();
                    self.searched = 0;
                } else if self.searched > self.limit.saturating_add(1) {
                    let ends = self.skipping.insert(Box::default());
                    ends.take(&self.input);
                    self.input = BytesMut::new();
                    self.searched = 0;
                }
                return None;
            };
            let mut line = self.input.split_to(self.searched + end + 1);
            self.searched = 0;
            line.truncate(line.len() - 1);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            let mut skipping = self.skipping.take();
            if skipping.is_none() && line.len() > self.limit {
                skipping = Some(Box::default());
            }
            if let Some(mut ends) = skipping {
                ends.take(&line);
                return Some(Incoming::Oversized(ends.skipped(self.limit)));
            }
            // Empty lines separate nothing; some peers send them to keep a pipe warm.
            if !line.iter().all(u8::is_ascii_whitespace) {
                if line.len() > KEPT && self.input.len() <= READ {
                    self.input = BytesMut::from(&*self.input);
                    // So that there is room for a whole read to the very end.
                    self.expected = (line.len() + 2 * READ).min(EXPECTED);
                }
                return Some(Incoming::Message(line.freeze()));
            }
            *empty += 1;
        }
        None
    }
}

impl Transport for Stream {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        let mut empty = 0;
        loop {
            if let Some(line) = self.line(&mut empty) {
                return Poll::Ready(Ok(Some(line)));
            }
            if empty == EMPTY {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            let begun = self.input.len();
            let expected = if begun >= READ { self.expected.saturating_sub(begun) } else { 0 };
            self.input.reserve(READ.max(expected));
            // A new future each time: a dropped one has read nothing.
            if ready!(pin!(self.reader.read_buf(&mut self.input)).poll(cx))? == 0 {
                self.ended = true;
                // A last line without its end is a message all the same.
                self.input.extend_from_slice(b"\n");
            }
        }
    }

    fn send(&mut self, message: Bytes) {
        self.dirty = true;
        if message.len() < LARGE {
            self.gathered.extend_from_slice(&message);
            self.gathered.extend_from_slice(b"\n");
            return;
        }
        self.gather();
        self.output.push_back(message);
        self.gathered.extend_from_slice(b"\n");
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.dirty {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_output(cx))?;
        ready!(self.writer.as_mut().poll_flush(cx))?;
        self.dirty = false;
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush(cx))?;
        self.writer.as_mut().poll_shutdown(cx)
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl DrivenTransport for Stream {
    fn kind(&self) -> TransportKind {
        self.kind
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn is_local(&self) -> bool {
        self.local
    }

    fn limit_messages(&mut self, bytes: usize) {
        if !self.has_own_limit {
            self.limit = bytes;
        }
    }
}

fn poll_write_some(
    writer: Pin<&mut dyn AsyncWrite>,
    bytes: &[u8],
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    match ready!(writer.poll_write(cx, bytes))? {
        0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
        written => Poll::Ready(Ok(written)),
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::transport::{Oversized, Skipped};

    async fn received(stream: &mut Stream) -> Option<Incoming> {
        poll_fn(|cx| stream.poll_recv(cx)).await.unwrap()
    }

    fn skipped(limit: usize, what: Skipped) -> Option<Incoming> {
        Some(Incoming::Oversized(Oversized { what, ..Oversized::new(limit) }))
    }

    fn message(text: &'static str) -> Option<Incoming> {
        Some(Incoming::Message(Bytes::from_static(text.as_bytes())))
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_are_cut() {
        let (ours, mut theirs) = tokio::io::duplex(3);
        let (reader, writer) = tokio::io::split(ours);
        let mut stream = Stream::new(reader, writer);
        let write = async move {
            theirs.write_all(b"{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\"").await.unwrap();
            theirs.write_all(b":3}").await.unwrap();
        };
        let read = async {
            assert_eq!(received(&mut stream).await, message(r#"{"a":1}"#));
            assert_eq!(received(&mut stream).await, message(r#"{"b":2}"#));
            assert_eq!(received(&mut stream).await, message(r#"{"c":3}"#));
            assert_eq!(received(&mut stream).await, None);
        };
        tokio::join!(write, read);
    }

    #[test]
    fn empty_lines_leave_time_to_other_tasks() {
        #[derive(Default)]
        struct Woken(AtomicUsize);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let text = format!("{}{{}}\n", "\n".repeat(10 * EMPTY));
        let mut stream = Stream::new(io::Cursor::new(text.into_bytes()), tokio::io::sink());
        let woken = Arc::new(Woken::default());
        let waker = woken.clone().into();
        let mut poll = || stream.poll_recv(&mut Context::from_waker(&waker)).map(Result::unwrap);
        for polls in 1..=10 {
            assert_eq!(poll(), Poll::Pending);
            assert_eq!(woken.0.load(Ordering::Relaxed), polls);
        }
        assert_eq!(poll(), Poll::Ready(message("{}")));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let (reader, writer) = tokio::io::split(ours);
        let mut stream = Stream::new(reader, writer).limit(100);
        let write = async move {
            theirs.write_all(format!("{}\n", "x".repeat(100_000)).as_bytes()).await.unwrap();
            theirs.write_all(format!("{}\n{}\n", "y".repeat(101), "z".repeat(100)).as_bytes()).await.unwrap();
        };
        let read = async {
            assert_eq!(received(&mut stream).await, skipped(100, Skipped::Noise));
            assert!(stream.input.capacity() < 2 * READ);
            assert_eq!(received(&mut stream).await, skipped(100, Skipped::Noise));
            assert_eq!(received(&mut stream).await, Some(Incoming::Message("z".repeat(100).into())));
            assert_eq!(received(&mut stream).await, None);
        };
        tokio::join!(write, read);
    }

    #[tokio::test]
    async fn small_messages_leave_together_and_large_ones_in_their_place() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(ours);
        let mut stream = Stream::new(reader, writer);
        let large = "l".repeat(LARGE);
        for text in ["a", "b", &large, "c"] {
            stream.send(Bytes::copy_from_slice(text.as_bytes()));
        }
        poll_fn(|cx| stream.poll_flush(cx)).await.unwrap();
        drop(stream);
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, format!("a\nb\n{large}\nc\n"));
    }

    #[tokio::test]
    async fn a_large_message_leaves_no_large_buffer_behind() {
        for line in ["x".repeat(8 << 20), "x".repeat(20 << 20)] {
            let (ours, mut theirs) = tokio::io::duplex(1 << 20);
            let (reader, writer) = tokio::io::split(ours);
            let mut stream = Stream::new(reader, writer);
            let write = async move {
                theirs.write_all(line.as_bytes()).await.unwrap();
                theirs.write_all(b"\nsmall\n").await.unwrap();
                theirs
            };
            let read = async {
                drop(received(&mut stream).await);
                assert_eq!(received(&mut stream).await, message("small"));
                assert!(poll_fn(|cx| Poll::Ready(stream.poll_recv(cx))).await.is_pending());
            };
            let (theirs, ()) = tokio::join!(write, read);
            assert!(stream.input.capacity() <= KEPT, "{}", stream.input.capacity());
            for _ in 0..100 {
                stream.send("y".repeat(LARGE - 1).into());
            }
            let read = async move {
                let mut theirs = theirs;
                let mut all = vec![0; 100 * LARGE];
                theirs.read_exact(&mut all).await.unwrap();
                theirs
            };
            let (written, _theirs) = tokio::join!(poll_fn(|cx| stream.poll_flush(cx)), read);
            written.unwrap();
            stream.gathered.reserve(1);
            assert!(stream.gathered.capacity() <= KEPT, "{}", stream.gathered.capacity());
        }
    }

    #[tokio::test]
    async fn a_long_line_has_the_room_that_the_last_one_took() {
        for (last, next, room) in
            [(5 * KEPT, 2 * READ, 5 * KEPT), (8 << 20, 2 * READ, EXPECTED), (8 << 20, 1, 0)]
        {
            let (ours, mut theirs) = tokio::io::duplex(16 << 20);
            let (reader, writer) = tokio::io::split(ours);
            let mut stream = Stream::new(reader, writer);
            theirs.write_all(format!("{}\n", "x".repeat(last)).as_bytes()).await.unwrap();
            assert_eq!(received(&mut stream).await, Some(Incoming::Message("x".repeat(last).into())));
            theirs.write_all("y".repeat(next).as_bytes()).await.unwrap();
            assert!(poll_fn(|cx| Poll::Ready(stream.poll_recv(cx))).await.is_pending());
            let capacity = stream.input.capacity();
            assert!((room..=room + 2 * READ).contains(&capacity), "{capacity} for {next} behind {last}");
        }
    }

    #[tokio::test]
    async fn the_longest_line_that_is_taken_may_end_as_on_windows() {
        let (ours, mut theirs) = tokio::io::duplex(1);
        let (reader, writer) = tokio::io::split(ours);
        let mut stream = Stream::new(reader, writer).limit(4);
        let write = async move { theirs.write_all(b"1234\r\n12345\r\n").await.unwrap() };
        let read = async {
            assert_eq!(received(&mut stream).await, message("1234"));
            assert_eq!(received(&mut stream).await, skipped(4, Skipped::Noise));
        };
        tokio::join!(write, read);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_known_by_its_ends() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let (reader, writer) = tokio::io::split(ours);
        let mut stream = Stream::new(reader, writer).limit(100);
        let text = "x".repeat(1_000);
        let write = async move {
            for line in [
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{text}"}}}}"#),
                format!(r#"{{"result":{{"text":"{text}"}},"jsonrpc":"2.0","id":8}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":9,"result":{{"t":"{}"}}}}"#, &text[..60]),
            ] {
                theirs.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
            }
        };
        let read = async {
            for id in 7..=9 {
                assert_eq!(received(&mut stream).await, skipped(100, Skipped::Answer(id.into())));
            }
        };
        tokio::join!(write, read);
    }
}
