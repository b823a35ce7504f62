use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::idle::IdleClock;

/// A byte stream with a prepended buffer that reports reads and stalled writes to an [`IdleClock`].
#[derive(Debug)]
pub(in crate::server::http) struct ActivityIo<IO> {
    io: IO,
    /// Bytes that were received before they were asked for.
    prefix: Bytes,
    watches_for_end: bool,
    clock: Arc<IdleClock>,
    closing: Closing,
    /// Whether the last write was pending, and the last flush.
    stalled: (bool, bool),
}

#[derive(Debug)]
enum Closing {
    No,
    /// Our side is closed; input is discarded until the timer fires.
    Lingering(Pin<Box<Sleep>>),
    Done,
}

/// How long input is discarded after our side was closed.
const LINGER: Duration = Duration::from_secs(2);

impl<IO> ActivityIo<IO> {
    pub(in crate::server::http) fn new(io: IO, prefix: Bytes, clock: Arc<IdleClock>) -> Self {
        Self { io, prefix, watches_for_end: false, clock, closing: Closing::No, stalled: (false, false) }
    }

    /// Reports that the client has disconnected as an error of a flush, if a request is active. hyper flushes whenever it has nothing else to
    /// do; it would look for the end by itself, with a new buffer for each request (see `bench/LEDGER.md`).
    pub(in crate::server::http) fn watch_for_end(mut self) -> Self {
        self.watches_for_end = true;
        self
    }

    fn record_stall(&mut self, stalled: (bool, bool)) {
        if stalled != self.stalled {
            self.stalled = stalled;
            self.clock.set_stalled(stalled.0 || stalled.1);
        }
    }
}

/// The most bytes that are received before they are asked for: a client may send its next request early.
const EARLY_BYTES: usize = 64;

impl<IO: AsyncRead + Unpin> ActivityIo<IO> {
    /// Fails if the client has disconnected while a request is active.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.watches_for_end || self.prefix.has_remaining() || !self.clock.has_request() {
            return Ok(());
        }
        let mut early = [0; EARLY_BYTES];
        let mut early = ReadBuf::new(&mut early);
        match Pin::new(&mut self.io).poll_read(cx, &mut early)? {
            Poll::Pending => Ok(()),
            Poll::Ready(()) if early.filled().is_empty() => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client has disconnected"))
            }
            Poll::Ready(()) => {
                self.prefix = Bytes::copy_from_slice(early.filled());
                // Whoever waits for them was told that there are none.
                cx.waker().wake_by_ref();
                Ok(())
            }
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for ActivityIo<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.prefix.has_remaining() {
            let part = self.prefix.len().min(buf.remaining());
            buf.put_slice(&self.prefix.split_to(part));
            // And what follows, if it is there: a reader that gets a part of the head enlarges its buffer for the rest, and keeps it.
            if buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let filled = buf.filled().len();
            return match Pin::new(&mut self.io).poll_read(cx, buf) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                read => {
                    if read.is_ready() && filled < buf.filled().len() {
                        self.clock.bytes_received();
                    }
                    Poll::Ready(Ok(()))
                }
            };
        }
        let filled = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        if filled < buf.filled().len() {
            self.clock.bytes_received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ActivityIo<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.record_stall((polled.is_pending(), false));
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.record_stall((polled.is_pending(), false));
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        // Flushing a socket is a no-op, so its success does not mean that a pending write can proceed.
        let (write, _) = self.stalled;
        self.record_stall((write, polled.is_pending()));
        self.poll_end(cx)?;
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Closing::No = self.closing {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            let unread = self.clock.has_unread_body();
            self.closing = if unread { Closing::Lingering(Box::pin(sleep(LINGER))) } else { Closing::Done };
        }
        // Closing a socket with unread input resets it, and the client would never see the response that gives the
        // reason.
        let Self { io, closing, .. } = &mut *self;
        let Closing::Lingering(timer) = closing else { return Poll::Ready(Ok(())) };
        let mut discarded = [0; 4096];
        loop {
            if timer.as_mut().poll(cx).is_ready() {
                break;
            }
            let mut discarded = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut discarded)) {
                Ok(()) if !discarded.filled().is_empty() => {}
                _ => break,
            }
        }
        *closing = Closing::Done;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::server::http::edge::idle::IdleLimits;

    #[tokio::test]
    async fn the_first_read_has_all_that_is_there() {
        let limit = Duration::from_secs(1);
        let clock = IdleClock::new(IdleLimits { head: limit, idle: limit, write: limit }, None);
        let mut io = ActivityIo::new(&b" / HTTP/1.1"[..], Bytes::from_static(b"GET"), clock);
        let mut read = [0; 64];
        let length = io.read(&mut read).await.unwrap();
        assert_eq!(&read[..length], b"GET / HTTP/1.1");
        assert_eq!(io.read(&mut read).await.unwrap(), 0);
    }
}
