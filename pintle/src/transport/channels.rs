use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Incoming, Transport};

/// A transport made of two queues: for connections whose reading and writing are `async` code of your own.
///
/// Put each message that comes in into the first queue and send each message that comes out of the second. Dropping
/// the first queue's sender ends the connection.
///
/// ```
/// use pintle::transport::channels;
/// use tokio::sync::mpsc;
///
/// let (incoming, from_socket) = mpsc::channel(16);
/// let (to_socket, mut outgoing) = mpsc::channel(16);
/// let transport = channels(from_socket, to_socket);
/// // In tasks of your own: `incoming.send(bytes_of_a_message)` and `socket.send(outgoing.recv())`.
/// # drop((transport, incoming, outgoing.try_recv()));
/// ```
pub fn channels(incoming: mpsc::Receiver<Bytes>, outgoing: mpsc::Sender<Bytes>) -> Channels {
    Channels { incoming, outgoing, queued: VecDeque::new(), room: None }
}

/// See [`channels`].
pub struct Channels {
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Bytes>,
    queued: VecDeque<Bytes>,
    room: Option<Room>,
}

type Room =
    Pin<Box<dyn Future<Output = Result<mpsc::OwnedPermit<Bytes>, mpsc::error::SendError<()>>> + Send>>;

impl Transport for Channels {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        self.incoming.poll_recv(cx).map(|message| Ok(message.map(Incoming::Message)))
    }

    fn send(&mut self, message: Bytes) {
        self.queued.push_back(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.queued.is_empty() {
            let outgoing = &self.outgoing;
            // Most of the time there is room, and nothing to be made for waiting.
            if self.room.is_none()
                && let Ok(room) = outgoing.try_reserve()
            {
                if let Some(message) = self.queued.pop_front() {
                    room.send(message);
                }
                continue;
            }
            let room = self.room.get_or_insert_with(|| Box::pin(outgoing.clone().reserve_owned()));
            let permit = ready!(room.as_mut().poll(cx));
            self.room = None;
            let permit = permit.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            if let Some(message) = self.queued.pop_front() {
                permit.send(message);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").field("queued", &self.queued.len()).finish_non_exhaustive()
    }
}
