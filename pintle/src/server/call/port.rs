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

#[cfg(feature = "http-server")]
use super::outbox::Outbox;

/// A call's way to whoever owns its stream. All it says goes one way, so that it arrives in the order it was said.
#[derive(Debug)]
pub(crate) enum Port {
    /// Shared by the calls of a connection.
    Line(Line),
    /// The call's own: whoever drives the call looks into it.
    #[cfg(feature = "http-server")]
    Own(Outbox),
}

/// What a call says.
#[derive(Debug)]
pub(crate) enum Said {
    /// A notification, printed.
    Notice(Bytes),
    /// A question to be sent now. The answer comes back as the client worded it.
    Ask(InputRequest, Reply),
    /// Somebody stopped waiting for an answer: see [`Line::gave_up`].
    GaveUp,
    /// Its client may go, and come back in so many milliseconds.
    #[cfg(feature = "http-server")]
    HangUp(u64),
    /// Its end.
    Done(Call, Outcome),
}

#[cfg(feature = "http-server")]
impl Said {
    /// The bytes of a notice.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Notice(line) => line.len(),
            _ => 0,
        }
    }
}

/// Where the answer to a question goes.
pub(crate) type Reply = oneshot::Sender<Result<RawObject, AskError>>;

/// As many messages may wait as one write takes anyway; who says more waits.
pub(crate) const ROOM: usize = 128;

impl Port {
    /// Says something. If the stream is gone nobody is left to be told.
    pub(crate) async fn say(&self, said: Said) {
        match self {
            Self::Line(line) => line.say(said).await,
            #[cfg(feature = "http-server")]
            Self::Own(outbox) => outbox.say(said).await,
        }
    }

    /// Says something if there is room for it at once.
    pub(crate) fn try_say(&self, said: Said) -> bool {
        match self {
            Self::Line(line) => line.try_say(said),
            #[cfg(feature = "http-server")]
            Self::Own(outbox) => outbox.try_say(said),
        }
    }

    /// Whether something could be said at once.
    #[cfg(feature = "logging")]
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Line(line) => line.way.said.capacity() > 0,
            #[cfg(feature = "http-server")]
            Self::Own(outbox) => outbox.has_room(),
        }
    }

    /// Makes a notification and sends it, if there is room for it. `false` if not, and then it is not made either.
    pub(crate) fn try_notice(&self, make: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        match self {
            Self::Line(line) => line.try_notice(make),
            #[cfg(feature = "http-server")]
            Self::Own(outbox) => {
                outbox.has_room() && make().is_none_or(|line| outbox.try_say(Said::Notice(line.into())))
            }
        }
    }

    /// Sends a question; the answer is to be waited for.
    pub(crate) async fn ask(&self, request: InputRequest) -> Waiting<'_> {
        let (tx, rx) = oneshot::channel();
        self.say(Said::Ask(request, tx)).await;
        // Dropped before `rx` would be, so `rx` goes in with it.
        Waiting { answer: rx, port: self, over: false }
    }

    fn give_up(&self) {
        match self {
            Self::Line(line) => line.way.gave_up.store(true, Ordering::Release),
            #[cfg(feature = "http-server")]
            Self::Own(_) => {}
        }
        // Only to wake the owner: if there is no room it is awake, or will be.
        self.try_say(Said::GaveUp);
    }
}

/// The way of all calls of a connection to its task.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    way: Arc<Way>,
    /// Whose line it is. What is said for a call that is over is not passed on.
    ticket: Option<Ticket>,
}

#[derive(Debug)]
struct Way {
    said: mpsc::Sender<(Option<Ticket>, Said)>,
    /// Whether somebody stopped waiting for an answer.
    gave_up: AtomicBool,
}

impl Line {
    pub(crate) fn new() -> (Self, mpsc::Receiver<(Option<Ticket>, Said)>) {
        let (said, heard) = mpsc::channel(ROOM);
        (Self { way: Arc::new(Way { said, gave_up: AtomicBool::new(false) }), ticket: None }, heard)
    }

    /// The line of one call.
    pub(crate) fn of(&self, call: &Call) -> Self {
        Self { ticket: call.ticket(), ..self.clone() }
    }

    pub(crate) async fn say(&self, said: Said) {
        let _ = self.way.said.send((self.ticket, said)).await;
    }

    fn try_say(&self, said: Said) -> bool {
        self.way.said.try_send((self.ticket, said)).is_ok()
    }

    fn try_notice(&self, make: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        let Ok(room) = self.way.said.try_reserve() else { return false };
        if let Some(line) = make() {
            room.send((self.ticket, Said::Notice(line.into())));
        }
        true
    }

    /// Whether somebody stopped waiting for an answer since this was asked last.
    pub(crate) fn gave_up(&self) -> bool {
        self.way.gave_up.load(Ordering::Relaxed) && self.way.gave_up.swap(false, Ordering::AcqRel)
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
            self.port.give_up();
        }
    }
}
