use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use super::{Driven, DrivenTransport, Incoming, Transport, TransportKind};

/// Two transports that are connected to each other in memory.
///
/// ```
/// use pintle::transport::memory;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let (server_side, client_side) = memory();
/// # #[cfg(all(feature = "client", feature = "server"))] {
/// let serving = pintle::Server::new("demo", "1.0.0").serve(server_side)?;
/// let server = pintle::Client::new("demo", "1.0.0").connect(client_side).await?;
/// server.close().await;
/// serving.wait().await?;
/// # }
/// # Ok(()) }
/// ```
pub fn memory() -> (Memory, Memory) {
    let (there, back) = (Arc::<Pipe>::default(), Arc::<Pipe>::default());
    let one =
        Memory { input: there.clone(), output: back.clone(), queued: VecDeque::new(), limit: usize::MAX };
    let other = Memory { input: back, output: there, queued: VecDeque::new(), limit: usize::MAX };
    (one, other)
}

/// One end of a connection in memory. Messages are handed over whole; nothing is framed.
#[derive(Debug)]
pub struct Memory {
    input: Arc<Pipe>,
    output: Arc<Pipe>,
    queued: VecDeque<Bytes>,
    limit: usize,
}

/// One direction.
#[derive(Debug, Default)]
struct Pipe(Mutex<PipeState>);

#[derive(Debug, Default)]
struct PipeState {
    messages: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Limit of unread bytes; above it the writer waits.
const FULL: usize = 256 << 10;

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Transport for Memory {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        let mut state = self.input.lock();
        if let Some(message) = state.messages.pop_front() {
            state.bytes -= message.len();
            let writer = if state.bytes < FULL { state.writer.take() } else { None };
            drop(state);
            writer.into_iter().for_each(Waker::wake);
            return Poll::Ready(Ok(Some(Incoming::within(message, self.limit))));
        }
        if state.closed {
            return Poll::Ready(Ok(None));
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn send(&mut self, message: Bytes) {
        self.queued.push_back(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.output.lock();
        while !self.queued.is_empty() {
            if state.closed {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if state.bytes >= FULL {
                state.writer = Some(cx.waker().clone());
                break;
            }
            if let Some(message) = self.queued.pop_front() {
                state.bytes += message.len();
                state.messages.push_back(message);
            }
        }
        let reader = if state.messages.is_empty() { None } else { state.reader.take() };
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        if self.queued.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl DrivenTransport for Memory {
    fn kind(&self) -> TransportKind {
        TransportKind::Memory
    }

    fn limit_messages(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.input.close();
        self.output.close();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn what_one_end_sends_the_other_receives_until_it_is_dropped() {
        let (mut one, mut other) = memory();
        one.send("a".into());
        one.send("b".into());
        poll_fn(|cx| one.poll_flush(cx)).await.unwrap();
        drop(one);
        for expected in [Some("a"), Some("b"), None] {
            let received = poll_fn(|cx| other.poll_recv(cx)).await.unwrap();
            assert_eq!(received, expected.map(|text| Incoming::Message(text.into())));
        }
        other.send("c".into());
        assert!(poll_fn(|cx| other.poll_flush(cx)).await.is_err());
    }

    #[tokio::test]
    async fn a_writer_waits_for_a_slow_reader() {
        let (mut one, mut other) = memory();
        for _ in 0..3 {
            one.send(vec![b'x'; FULL].into());
        }
        let write = poll_fn(|cx| one.poll_flush(cx));
        let read = async {
            for _ in 0..3 {
                assert!(poll_fn(|cx| other.poll_recv(cx)).await.unwrap().is_some());
                tokio::task::yield_now().await;
            }
        };
        let (written, ()) = tokio::join!(write, read);
        written.unwrap();
    }
}
