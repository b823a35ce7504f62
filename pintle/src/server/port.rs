use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use pintle_proto::{
    inputs::AskError,
    server::{Call, Outcome, Ticket},
};
use pintle_types::{RawObject, schema::InputRequest};
use tokio::sync::{mpsc, oneshot};

/// A call's way to whoever owns its stream. One queue for all it says, so that it arrives in the order it was said.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    said: mpsc::Sender<(Option<Ticket>, Said)>,
    /// Whose port it is. What is said for a call that is over is not passed on.
    ticket: Option<Ticket>,
    /// Whether somebody stopped waiting for an answer.
    gave_up: Arc<AtomicBool>,
}

/// What a call says.
#[derive(Debug)]
pub(crate) enum Said {
    /// A notification, printed.
    Notice(Bytes),
    /// A question to be sent now. The answer comes back as the client worded it.
    Ask(InputRequest, Reply),
    /// Somebody stopped waiting for an answer: see [`Port::gave_up`].
    GaveUp,
    /// Its end.
    Done(Call, Outcome),
}

/// Where the answer to a question goes.
pub(crate) type Reply = oneshot::Sender<Result<RawObject, AskError>>;

/// As many messages may wait as one write takes anyway; who says more waits.
pub(crate) const ROOM: usize = 128;

impl Port {
    pub(crate) fn new() -> (Self, mpsc::Receiver<(Option<Ticket>, Said)>) {
        let (said, heard) = mpsc::channel(ROOM);
        (Self { said, ticket: None, gave_up: Arc::default() }, heard)
    }

    /// The port of one call.
    pub(crate) fn of(&self, call: &Call) -> Self {
        Self { ticket: call.ticket(), ..self.clone() }
    }

    /// Says something. If the stream is gone nobody is left to be told.
    pub(crate) async fn say(&self, said: Said) {
        let _ = self.said.send((self.ticket, said)).await;
    }

    /// Says something if there is room for it at once.
    pub(crate) fn try_say(&self, said: Said) -> bool {
        self.said.try_send((self.ticket, said)).is_ok()
    }

    /// Whether something could be said at once.
    #[cfg(feature = "logging")]
    pub(crate) fn has_room(&self) -> bool {
        self.said.capacity() > 0
    }

    /// Makes a notification and sends it, if there is room for it. `false` if not, and then it is not made either.
    pub(crate) fn try_notice(&self, make: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        let Ok(room) = self.said.try_reserve() else { return false };
        if let Some(line) = make() {
            room.send((self.ticket, Said::Notice(line.into())));
        }
        true
    }

    /// Sends a question; the answer is to be waited for.
    pub(crate) async fn ask(&self, request: InputRequest) -> Waiting<'_> {
        let (tx, rx) = oneshot::channel();
        self.say(Said::Ask(request, tx)).await;
        // Dropped before `rx` would be, so `rx` goes in with it.
        Waiting { answer: rx, port: self, over: false }
    }

    /// Whether somebody stopped waiting for an answer since this was asked last.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed) && self.gave_up.swap(false, Ordering::AcqRel)
    }
}

/// One who waits for an answer. If it is dropped before, the question is taken back.
pub(crate) struct Waiting<'a> {
    answer: oneshot::Receiver<Result<RawObject, AskError>>,
    port: &'a Port,
    over: bool,
}

impl Waiting<'_> {
    /// The answer, as the client worded it.
    pub(crate) async fn answer(mut self) -> Result<RawObject, AskError> {
        let answer = (&mut self.answer).await;
        self.over = true;
        answer.unwrap_or(Err(AskError::CallOver))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.answer.close();
            self.port.gave_up.store(true, Ordering::Release);
            // Only to wake the owner: if there is no room it is awake, or will be.
            self.port.try_say(Said::GaveUp);
        }
    }
}
