//! Whether anything happens on a connection, and until when nothing may.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use crate::server::http::PeerAddress;

/// How long a connection may be quiet.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::http) struct Pauses {
    /// Between its opening, or the first byte of a request, and the end of the request's head.
    pub(in crate::server::http) head: Duration,
    /// Between the end of an answer and the first byte of the next request.
    pub(in crate::server::http) idle: Duration,
    /// While something is to be written and the client takes none of it.
    pub(in crate::server::http) write: Duration,
}

/// What happens on one connection.
///
/// One timer for its whole life looks at this when it fires: a timer for each request would cost more than the rest of
/// what is done here.
#[derive(Debug)]
pub(in crate::server::http) struct Quiet {
    pauses: Pauses,
    /// Where it comes from, if the extensions of its requests do not say so.
    pub(in crate::server::http) untold: Option<PeerAddress>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    requests: usize,
    /// When the last answer ended, or the first byte after it came. `None` if that was just now: most first bytes bring a
    /// whole request, of which nobody asks when it began. (Measured: 130 of 40,000 instructions of a small call.)
    since: Option<Instant>,
    pause: Duration,
    /// Since when nothing could be written that there is to write.
    stalled: Option<Instant>,
    /// A request was answered before all of it had come.
    unread: bool,
}

/// While there is a request nothing is looked at more often: whoever allows no pause at all is no reason to spin.
const LEAST: Duration = Duration::from_secs(1);

impl Quiet {
    pub(in crate::server::http) fn new(pauses: Pauses, untold: Option<PeerAddress>) -> Arc<Self> {
        let state = State {
            requests: 0,
            since: Some(Instant::now()),
            pause: pauses.head,
            stalled: None,
            unread: false,
        };
        Arc::new(Self { pauses, untold, state: Mutex::new(state) })
    }

    /// Until when a request has to be there, if there is none, or something has to be written, if nothing can be. Asked
    /// whenever something has happened.
    pub(in crate::server::http) fn until(&self) -> Option<Instant> {
        let mut state = self.lock();
        if let Some(stalled) = state.stalled {
            return Some(stalled + self.pauses.write);
        }
        if state.requests > 0 {
            return None;
        }
        Some(*state.since.get_or_insert_with(Instant::now) + state.pause)
    }

    /// When to look again.
    pub(super) fn look_again(&self) -> Instant {
        self.until().unwrap_or_else(|| Instant::now() + self.pauses.head.min(self.pauses.idle).max(LEAST))
    }

    /// A request has come; it is there until this is dropped.
    pub(in crate::server::http) fn begin(self: &Arc<Self>) -> Busy {
        self.lock().requests += 1;
        Busy(self.clone())
    }

    /// A request's body was dropped before its end: the client may still be sending it.
    pub(super) fn left_unread(&self) {
        self.lock().unread = true;
    }

    /// The client takes nothing of what is written, or does so again.
    fn stalled(&self, stalled: bool) {
        let mut state = self.lock();
        state.stalled = if stalled { state.stalled.or_else(|| Some(Instant::now())) } else { None };
        if !stalled && state.requests == 0 {
            // An answer that is being taken is no pause.
            state.since = None;
        }
    }

    /// Bytes have come: the beginning of a head, if there is no request.
    fn stirred(&self) {
        let mut state = self.lock();
        // From its first byte on, not from the latest one: a head that drips is not waited for.
        if state.requests == 0 && state.pause == self.pauses.idle && self.pauses.head < self.pauses.idle {
            state.since = None;
            state.pause = self.pauses.head;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that has not been answered to the end.
#[derive(Debug)]
pub(in crate::server::http) struct Busy(Arc<Quiet>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.requests -= 1;
        if state.requests == 0 {
            state.since = None;
            state.pause = self.0.pauses.idle;
        }
    }
}

pin_project! {
    /// The body of an answer: while it is there, the request is.
    pub(in crate::server::http) struct Answer<B> {
        #[pin]
        body: B,
        busy: Busy,
    }
}

impl<B> Answer<B> {
    pub(in crate::server::http) fn new(body: B, busy: Busy) -> Self {
        Self { body, busy }
    }
}

impl<B: Body> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A byte stream that tells when something comes in, and gives back first what was read of it before.
#[derive(Debug)]
pub(in crate::server::http) struct Watched<IO> {
    io: IO,
    before: Bytes,
    quiet: Arc<Quiet>,
    closing: Closing,
    /// Whether the last write had to wait, and the last flush.
    stalled: (bool, bool),
}

#[derive(Debug)]
enum Closing {
    No,
    /// Our side is closed; what the other still sends is thrown away until then.
    Lingering(Pin<Box<Sleep>>),
    Done,
}

/// How long a client has to stop sending what nobody wants.
const LINGER: Duration = Duration::from_secs(2);

impl<IO> Watched<IO> {
    pub(in crate::server::http) fn new(io: IO, before: Bytes, quiet: Arc<Quiet>) -> Self {
        Self { io, before, quiet, closing: Closing::No, stalled: (false, false) }
    }

    fn note(&mut self, stalled: (bool, bool)) {
        if stalled != self.stalled {
            self.stalled = stalled;
            self.quiet.stalled(stalled.0 || stalled.1);
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Watched<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.has_remaining() {
            let part = self.before.len().min(buf.remaining());
            buf.put_slice(&self.before.split_to(part));
            return Poll::Ready(Ok(()));
        }
        let filled = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        if filled < buf.filled().len() {
            self.quiet.stirred();
        }
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.note((polled.is_pending(), false));
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.note((polled.is_pending(), false));
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        // A socket has nothing to flush, so that says nothing of a write that waits.
        let (write, _) = self.stalled;
        self.note((write, polled.is_pending()));
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Closing::No = self.closing {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            let unread = self.quiet.lock().unread;
            self.closing = if unread { Closing::Lingering(Box::pin(sleep(LINGER))) } else { Closing::Done };
        }
        // To close a socket with something unread in it is to reset it, and the client would never see the answer
        // that says what was wrong.
        let Self { io, closing, .. } = &mut *self;
        let Closing::Lingering(until) = closing else { return Poll::Ready(Ok(())) };
        let mut waste = [0; 4096];
        loop {
            if until.as_mut().poll(cx).is_ready() {
                break;
            }
            let mut waste = ReadBuf::new(&mut waste);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut waste)) {
                Ok(()) if !waste.filled().is_empty() => {}
                _ => break,
            }
        }
        *closing = Closing::Done;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_allows_no_pause_has_nobody_look_all_the_time() {
        let quiet = Quiet::new(
            Pauses { head: Duration::from_secs(30), idle: Duration::ZERO, write: Duration::MAX },
            None,
        );
        let request = quiet.begin();
        assert_eq!(quiet.until(), None);
        assert!(quiet.look_again() >= Instant::now() + LEAST);
        drop(request);
        assert_eq!(quiet.until(), Some(Instant::now()), "it is closed at once");
    }
}
