//! Logs of the events that were sent on the streams of sessions, for clients that resume a stream.
//!
//! A client of the session era that lost a stream sends the id of the last event that it received, and gets the events that
//! followed. An [`EventLog`] keeps them; [`MemoryLog`] is the log of a single process. Servers that share their sessions need
//! another implementation of the trait: run `pintle_testing::kits::event_log::check` on it.

mod memory;

use std::{fmt, sync::Arc};

use bytes::Bytes;

pub use memory::{LogBounds, MemoryLog};

use crate::server::store::Stored;

/// A log of the events of streams, for clients that resume a stream.
///
/// A stream is identified by its session and a number, which is not reused in the session. Its life cycle is
/// [`open`](Self::open), [`append`](Self::append) for each event, and then [`append_last`](Self::append_last) or
/// [`end`](Self::end) if it may still be resumed, or [`forget_stream`](Self::forget_stream) if not.
///
/// The writer of a stream numbers its events itself, from 1 without gaps. The log accepts each position once: if a second process
/// takes over a stream, one of the two is refused with [`Appended::Taken`], and no reader sees two versions of a stream.
///
/// All methods may be called concurrently. A log may drop old events, but a replay is complete and in order, or it is
/// [`Replay::Gone`].
pub trait EventLog: fmt::Debug + Send + Sync + 'static {
    /// Adds a stream without events, if there is none of that number. `opening` is returned with each replay: it describes the
    /// stream for other processes.
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()>;

    /// Appends an event, whose position follows that of the newest event.
    ///
    /// If it fails, nothing more is appended to the stream, and the stream is forgotten: a stream with a gap must not be resumed.
    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended>;

    /// Appends the last event of a stream, and ends the stream: both, or neither.
    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended>;

    /// Replaces the description of a stream, if `newest` is its newest event: place 0 if it has none. So a process that no longer writes the
    /// stream changes nothing.
    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended>;

    /// Returns the events that followed this one on its stream.
    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay>;

    /// Ends a stream: nothing more can be appended. It may be forgotten when its last event is dropped.
    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()>;

    /// Forgets a stream, which will not be resumed. If it fails for a stream with a missing event, it is called again, with the
    /// stream's next message and at its end.
    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()>;

    /// Sets the owner of a session whose streams are opened next: its principal, or the network of its client. A log that is full can
    /// so drop the events of the owner that has most. The default does nothing.
    fn set_owner(&self, session: &str, owner: &str) {
        let _ = (session, owner);
    }

    /// Forgets all streams of a session that has ended.
    ///
    /// With a session store, the last process that used a session calls this when the session is no longer in the store. A process that crashed does not: a shared log has to expire events itself.
    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()>;
}

impl<L: EventLog + ?Sized> EventLog for Arc<L> {
    fn set_owner(&self, session: &str, owner: &str) {
        (**self).set_owner(session, owner);
    }

    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        (**self).open(session, stream, opening)
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        (**self).append(session, id, data)
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        (**self).append_last(session, id, data)
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        (**self).describe(session, newest, opening)
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        (**self).after(session, last)
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        (**self).end(session, stream)
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        (**self).forget_stream(session, stream)
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        (**self).forget_session(session)
    }
}

/// The result of [`EventLog::append`] and [`EventLog::describe`].
#[expect(clippy::exhaustive_enums, reason = "a position is free, taken, or not there")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Appended {
    /// The event, or the description, is in the log.
    Done,
    /// The position is taken, or another event is the newest: another process writes the stream.
    Taken,
    /// The stream is unknown, forgotten or ended.
    Gone,
}

/// The first position of events that are in no log.
const UNLOGGED: u64 = 1 << 63;

/// The id of an event: its stream, and its position there.
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
    /// The number of the stream in its session.
    pub stream: u64,
    /// The position in the stream, larger than those of all earlier events. 0 is before the first event.
    pub place: u64,
}

impl EventId {
    /// Returns the id before the first event of a stream.
    pub fn start(stream: u64) -> Self {
        Self { stream, place: 0 }
    }

    /// Creates the id of an event that could not be logged at this place. No log has it, so the stream cannot be resumed from it:
    /// neither with a gap, nor with an event that the client has.
    pub(in crate::server::http) fn unlogged(stream: u64, place: u64) -> Self {
        Self { stream, place: UNLOGGED | place }
    }

    /// Returns the place of the event in its stream, logged or not.
    pub(in crate::server::http) fn place_in_stream(self) -> u64 {
        self.place & !UNLOGGED
    }

    /// Returns whether it can be in a log.
    pub(in crate::server::http) fn can_be_logged(self) -> bool {
        self.place < UNLOGGED
    }

    /// Parses an id in the form that [`Display`](fmt::Display) writes, and no other.
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

/// An event in the log.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// The id.
    pub id: EventId,
    /// The message.
    pub data: Bytes,
}

impl Event {
    /// Creates an event.
    pub fn new(id: EventId, data: Bytes) -> Self {
        Self { id, data }
    }
}

/// The events that a client missed.
#[expect(clippy::exhaustive_enums, reason = "all of it, or not")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Replay {
    /// All events that followed.
    Events(MissedEvents),
    /// An event that followed was dropped, or the stream or the id is unknown.
    Gone,
}

/// All events that followed another one on its stream.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MissedEvents {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Whether the stream has ended, so that no more will follow.
    pub ended: bool,
    /// The description that the stream was [opened](EventLog::open) with, or that has [replaced](EventLog::describe) it.
    pub opening: Bytes,
}

impl MissedEvents {
    /// Creates the events of a stream that was opened with this description.
    pub fn new(events: Vec<Event>, ended: bool, opening: Bytes) -> Self {
        Self { events, ended, opening }
    }
}

/// Parses a decimal number without leading zeros.
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
