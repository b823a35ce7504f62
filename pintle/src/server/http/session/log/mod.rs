//! What was sent on the event streams of sessions, kept for clients whose connection broke.
//!
//! A client of the session era that lost a stream comes back with the id of the last event it saw, and is sent what
//! followed. An [`EventLog`] holds that; [`MemoryLog`] is the one of a single process. To write another, for servers that
//! share their sessions, see the trait, and run [`kit::check`] on it.

pub mod kit;
mod memory;

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;

pub use memory::{LogBounds, MemoryLog};

/// Where events are kept that a client may ask for again.
///
/// A stream is one number in one session, and has this life: [`open`](Self::open) where it can be resumed before its first
/// event, [`append`](Self::append) for each event, and then [`end`](Self::end) if somebody may still ask for it or
/// [`forget_stream`](Self::forget_stream) if nobody will. A number is not used again in its session.
///
/// All of it may be called at any time, from any task. A log may drop old events as it likes, but it says so: what it
/// replays is all that followed, in order, or it is [`Replay::Gone`].
pub trait EventLog: fmt::Debug + Send + Sync + 'static {
    /// Makes a stream known that has no event yet. The id is the one before the first event.
    fn open<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, EventId>;

    /// Keeps an event, and says what its id is. The ids of a stream ascend. A stream that is not known is opened.
    ///
    /// If it fails, nothing more is appended to this stream and it is forgotten, for nobody must come back to a stream with a
    /// gap in it.
    fn append<'a>(&'a self, session: &'a str, stream: u64, data: Bytes) -> Stored<'a, EventId>;

    /// All that followed this event on its stream.
    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay>;

    /// Nothing more will be appended to this stream: it may be forgotten with the last of its events.
    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()>;

    /// Nobody will ask for this stream again: its response was delivered.
    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()>;

    /// The session has ended, and all its streams with it.
    ///
    /// Where sessions are written down, the last process that used one forgets its events when it finds it gone from the
    /// [store](super::store::Sessions::contains). A process that crashed forgets nothing: a log that processes share drops
    /// what is old by itself.
    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()>;
}

/// What an event is called on the wire: its stream, and its place there.
///
/// ```
/// use pintle::server::http::log::EventId;
///
/// let id = EventId::parse("7-42").expect("well-formed");
/// assert_eq!((id.stream, id.place), (7, 42));
/// assert_eq!(id.to_string(), "7-42");
/// assert_eq!(EventId::parse("7-042"), None);
/// ```
#[expect(clippy::exhaustive_structs, reason = "it is written as these two numbers")]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct EventId {
    /// The stream, as it is known in its session.
    pub stream: u64,
    /// Larger than that of any earlier event of the stream. 0 is before the first one.
    pub place: u64,
}

impl EventId {
    /// The id before the first event of a stream.
    pub fn start(stream: u64) -> Self {
        Self { stream, place: 0 }
    }

    /// Reads what [`Display`](fmt::Display) writes, and nothing else: whatever another wrote is not ours.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, place) = text.split_once('-')?;
        Some(Self { stream: number(stream)?, place: number(place)? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.place)
    }
}

/// An event that was kept.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// What it is called.
    pub id: EventId,
    /// What it said.
    pub data: Bytes,
}

impl Event {
    /// An event.
    pub fn new(id: EventId, data: Bytes) -> Self {
        Self { id, data }
    }
}

/// What there is to send again.
#[expect(clippy::exhaustive_enums, reason = "all of it, or not")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Replay {
    /// Everything that followed, oldest first.
    Events(Vec<Event>),
    /// Something that followed is no longer there, or the stream is not known, or the id was never given out.
    Gone,
}

/// What a log answers with: at once, or when its store has.
///
/// ```
/// use pintle::server::http::log::Stored;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// assert_eq!(Stored::now(1).await?, 1);
/// assert_eq!(Stored::later(async { Ok(2) }).await?, 2);
/// # Ok(()) }
/// ```
pub struct Stored<'a, T>(StoredState<'a, T>);

enum StoredState<'a, T> {
    Now(Option<T>),
    Later(Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>),
}

impl<'a, T> Stored<'a, T> {
    /// The answer is known. Nothing is allocated for it.
    pub fn now(value: T) -> Self {
        Self(StoredState::Now(Some(value)))
    }

    /// The answer comes from somewhere else, or fails to.
    pub fn later(answer: impl Future<Output = io::Result<T>> + Send + 'a) -> Self {
        Self(StoredState::Later(Box::pin(answer)))
    }
}

/// A value is moved out of, never pinned in place.
impl<T> Unpin for Stored<'_, T> {}

impl<T> Future for Stored<'_, T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        match &mut self.0 {
            // Given away already: there is no second answer.
            StoredState::Now(value) => value.take().map_or(Poll::Pending, |value| Poll::Ready(Ok(value))),
            StoredState::Later(answer) => answer.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Stored<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            StoredState::Now(_) => "Stored::now",
            StoredState::Later(_) => "Stored::later",
        })
    }
}

/// A number as it is printed: digits, and no zero before them.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_texts_are_no_ids() {
        for text in [
            "",
            "-",
            "1",
            "1-",
            "-1",
            "1-2-3",
            "+1-2",
            "1-+2",
            "01-2",
            "1-02",
            "00-0",
            " 1-2",
            "1-2 ",
            "1_2",
            "a-1",
            "1-18446744073709551616",
            "١-٢",
            "1--2",
        ] {
            assert_eq!(EventId::parse(text), None, "{text:?}");
        }
        let last = EventId { stream: u64::MAX, place: u64::MAX };
        assert_eq!(EventId::parse("18446744073709551615-18446744073709551615"), Some(last));
        assert_eq!(EventId::parse("0-0"), Some(EventId::start(0)));
    }

    proptest! {
        #[test]
        fn an_id_is_read_as_it_was_written(stream: u64, place: u64) {
            let id = EventId { stream, place };
            prop_assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }

        #[test]
        fn what_is_read_is_what_would_be_written(text in "[0-9+-]{0,6}|\\PC{0,8}") {
            if let Some(id) = EventId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
