use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use pintle_proto::{
    inputs::AskError,
    server::{Call, Outcome, Ticket},
};
use pintle_types::{RawObject, schema::InputRequest};
use tokio::sync::{mpsc, oneshot};

use super::detached::DetachedEvents;
#[cfg(feature = "http-server")]
use super::own_sink::OwnSink;
use crate::server::core::sessions::LiveSession;

/// The destination of the events of one call. Events arrive in the order in which they were sent.
#[derive(Debug)]
pub(crate) enum CallSink {
    /// A queue that all calls of a connection share. The connection receives from it.
    Shared(SharedSink),
    /// A queue of this call alone. The call's driver receives from it.
    #[cfg(feature = "http-server")]
    Own(OwnSink),
    /// The events of a call that goes on after its response.
    Detached(Arc<DetachedEvents>),
}

/// An event of a running call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    /// A serialized notification.
    Notification(Bytes),
    /// A question of the handler. The receiver of the event decides where the answer comes from (the client, a task's
    /// record, a relayed call) and sends it as received; dropping the sender ends the question with
    /// [`AskError::CallOver`].
    Ask(InputRequest, AnswerSender),
    /// The handler no longer waits for one of its answers: see [`SharedSink::take_abandoned`].
    AskAbandoned,
    /// The client may disconnect, and should reconnect after this many milliseconds.
    #[cfg(feature = "http-server")]
    HangUp(u64),
    /// The outcome.
    Done(Call, Outcome),
}

#[cfg(feature = "http-server")]
impl CallEvent {
    /// Returns the length of a notification, and 0 for other events.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Notification(line) => line.len(),
            _ => 0,
        }
    }
}

/// The sender of the answer to a question.
pub(crate) type AnswerSender = oneshot::Sender<Result<RawObject, AskError>>;

/// The capacity of a sink, in events. A handler that sends more waits.
pub(crate) const CAPACITY: usize = 128;

impl CallSink {
    /// Sends an event, waiting for capacity. The event is dropped if the receiver is gone.
    pub(crate) async fn send(&self, event: CallEvent) {
        match self {
            Self::Shared(sink) => sink.send(event).await,
            #[cfg(feature = "http-server")]
            Self::Own(sink) => sink.send(event).await,
            // Only questions and progress concern a detached call.
            Self::Detached(_) => {}
        }
    }

    /// Sends an event if there is capacity for it. Returns whether there was.
    pub(crate) fn try_send(&self, event: CallEvent) -> bool {
        match self {
            Self::Shared(sink) => sink.try_send(event),
            #[cfg(feature = "http-server")]
            Self::Own(sink) => sink.try_send(event),
            Self::Detached(_) => true,
        }
    }

    /// Returns whether an event could be sent without waiting.
    #[cfg(feature = "logging")]
    pub(crate) fn has_capacity(&self) -> bool {
        match self {
            Self::Shared(sink) => sink.shared.events.capacity() > 0,
            #[cfg(feature = "http-server")]
            Self::Own(sink) => sink.has_capacity(),
            Self::Detached(_) => true,
        }
    }

    /// Makes a notification and sends it, if there is capacity. Returns whether there was; if not, `make` is not called.
    pub(crate) fn try_notify(&self, make: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        match self {
            Self::Shared(sink) => sink.try_notify(make),
            #[cfg(feature = "http-server")]
            Self::Own(sink) => {
                sink.has_capacity()
                    && make().is_none_or(|line| sink.try_send(CallEvent::Notification(line.into())))
            }
            Self::Detached(_) => true,
        }
    }

    /// Sends a question with its key. The returned value waits for the answer.
    pub(crate) async fn ask(&self, key: &str, request: InputRequest) -> PendingAnswer<'_> {
        let (tx, rx) = oneshot::channel();
        match self {
            Self::Detached(events) => events.ask(key, request, tx),
            _ => self.send(CallEvent::Ask(request, tx)).await,
        }
        PendingAnswer { answer: rx, sink: self, done: false }
    }

    /// Returns the session that the events are sent in, if there is one.
    pub(crate) fn session(&self) -> Option<&Weak<dyn LiveSession>> {
        match self {
            Self::Shared(sink) => Some(&sink.shared.session),
            #[cfg(feature = "http-server")]
            Self::Own(sink) => sink.session(),
            Self::Detached(events) => events.session(),
        }
    }

    fn abandon(&self) {
        match self {
            Self::Shared(sink) => sink.shared.abandoned.store(true, Ordering::Release),
            #[cfg(feature = "http-server")]
            Self::Own(_) => {}
            Self::Detached(events) => events.abandon(),
        }
        // Only wakes the receiver: without capacity it is awake, or will be.
        self.try_send(CallEvent::AskAbandoned);
    }
}

/// A bounded queue that the calls of a connection share.
#[derive(Clone, Debug)]
pub(crate) struct SharedSink {
    shared: Arc<SharedQueue>,
    /// The call that sends. The connection drops events of calls that are over.
    ticket: Option<Ticket>,
}

struct SharedQueue {
    events: mpsc::Sender<(Option<Ticket>, CallEvent)>,
    session: Weak<dyn LiveSession>,
    /// Whether a call has abandoned a question.
    abandoned: AtomicBool,
}

impl fmt::Debug for SharedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueue").field("events", &self.events).finish_non_exhaustive()
    }
}

impl SharedSink {
    pub(crate) fn new(session: Weak<dyn LiveSession>) -> (Self, mpsc::Receiver<(Option<Ticket>, CallEvent)>) {
        let (events, receiver) = mpsc::channel(CAPACITY);
        let shared = Arc::new(SharedQueue { events, session, abandoned: AtomicBool::new(false) });
        (Self { shared, ticket: None }, receiver)
    }

    /// Returns the sink of one call.
    pub(crate) fn of(&self, call: &Call) -> Self {
        Self { ticket: call.ticket(), ..self.clone() }
    }

    async fn send(&self, event: CallEvent) {
        let _ = self.shared.events.send((self.ticket, event)).await;
    }

    fn try_send(&self, event: CallEvent) -> bool {
        self.shared.events.try_send((self.ticket, event)).is_ok()
    }

    fn try_notify(&self, make: impl FnOnce() -> Option<Vec<u8>>) -> bool {
        let Ok(permit) = self.shared.events.try_reserve() else { return false };
        if let Some(line) = make() {
            permit.send((self.ticket, CallEvent::Notification(line.into())));
        }
        true
    }

    /// Returns whether a call has abandoned a question since the last time.
    pub(crate) fn take_abandoned(&self) -> bool {
        self.shared.abandoned.load(Ordering::Relaxed) && self.shared.abandoned.swap(false, Ordering::AcqRel)
    }
}

/// A question without an answer yet. Dropping it abandons the question.
pub(crate) struct PendingAnswer<'a> {
    answer: oneshot::Receiver<Result<RawObject, AskError>>,
    sink: &'a CallSink,
    done: bool,
}

impl PendingAnswer<'_> {
    /// Waits for the answer, which is returned as it was received.
    pub(crate) async fn answer(mut self) -> Result<RawObject, AskError> {
        let answer = (&mut self.answer).await;
        self.done = true;
        answer.unwrap_or(Err(AskError::CallOver))
    }
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.answer.close();
            self.sink.abandon();
        }
    }
}
