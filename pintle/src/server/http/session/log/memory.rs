use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Appended, Event, EventId, EventLog, MissedEvents, Replay, Stored};

/// The limits of a [`MemoryLog`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct LogBounds {
    /// Bytes per session. The default is 1 MiB.
    pub session_bytes: usize,
    /// Bytes of all sessions. The default is 64 MiB. Above it, events of the owner that has most are dropped.
    pub total_bytes: usize,
    /// The time that an event is kept. The default is 5 minutes.
    pub age: Duration,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { session_bytes: 1 << 20, total_bytes: 64 << 20, age: Duration::from_secs(300) }
    }
}

/// An event log in the memory of this process, within limits.
///
/// Above a limit the oldest events of the largest session of the owner that has most are dropped, so that neither busy sessions nor
/// many of them displace the events of others. A session without streams uses no memory. Expired events are dropped when the log is next used.
///
/// ```
/// use pintle::server::http::log::{EventId, EventLog, MemoryLog, Replay};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let log = MemoryLog::default();
/// log.open("session", 1, "".into()).await?;
/// let [first, second] = [1, 2].map(|place| EventId { stream: 1, place });
/// log.append("session", first, "one".into()).await?;
/// log.append("session", second, "two".into()).await?;
///
/// let Replay::Events(missed) = log.after("session", first).await? else { panic!("all is there") };
/// assert_eq!(missed.events.len(), 1);
/// assert_eq!((missed.events[0].id, &missed.events[0].data[..]), (second, &b"two"[..]));
/// assert!(!missed.ended);
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct MemoryLog {
    bounds: LogBounds,
    events: Mutex<EventTable>,
}

impl MemoryLog {
    /// Creates a log with these limits.
    pub fn new(bounds: LogBounds) -> Self {
        Self { bounds, events: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, EventTable> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the expired events.
    fn expire(&self, events: &mut EventTable, now: Instant) {
        events.drop_while(|_, oldest| self.bounds.age <= now.duration_since(oldest.kept_at));
    }

    /// Appends an event within the limits.
    fn keep(&self, events: &mut EventTable, session: &str, id: EventId, data: Bytes) -> Appended {
        let now = Instant::now();
        self.expire(events, now);
        let appended = events.keep(session, id, data, now);
        if appended == Appended::Done {
            events.trim_session(session, self.bounds.session_bytes);
            events.trim(self.bounds.total_bytes);
        }
        appended
    }
}

impl EventLog for MemoryLog {
    fn set_owner(&self, session: &str, owner: &str) {
        self.lock().set_owner(session, owner);
    }

    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        let mut events = self.lock();
        let streams = &mut events.session(session).1.streams;
        streams.entry(stream).or_insert_with(|| StreamEvents { opening, ..StreamEvents::default() });
        Stored::now(())
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        let mut events = self.lock();
        Stored::now(self.keep(&mut events, session, id, data))
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        let mut events = self.lock();
        let appended = self.keep(&mut events, session, id, data);
        if appended == Appended::Done {
            events.end(session, id.stream);
        }
        Stored::now(appended)
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        Stored::now(self.lock().describe(session, newest, opening))
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        let mut events = self.lock();
        self.expire(&mut events, Instant::now());
        Stored::now(events.after(session, last))
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.lock().end(session, stream);
        Stored::now(())
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.lock().forget_stream(session, stream);
        Stored::now(())
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        self.lock().forget_session(session);
        Stored::now(())
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.lock();
        f.debug_struct("MemoryLog")
            .field("bounds", &self.bounds)
            .field("sessions", &events.sessions.len())
            .field("events", &events.events.len())
            .field("bytes", &events.bytes)
            .finish()
    }
}

/// The approximate size of an event besides its data.
const OVERHEAD: usize = 160;

/// All events in the order in which they were appended, and their sessions.
#[derive(Default)]
struct EventTable {
    next: u64,
    bytes: usize,
    events: BTreeMap<u64, StoredEvent>,
    sessions: HashMap<Arc<str>, SessionEvents>,
    owners: HashMap<Arc<str>, OwnerEvents>,
    /// The owners by size.
    by_bytes: BTreeSet<(usize, Arc<str>)>,
}

/// The events of a principal, or of a network.
#[derive(Default)]
struct OwnerEvents {
    bytes: usize,
    /// The sessions by size.
    sessions: BTreeSet<(usize, Arc<str>)>,
}

struct StoredEvent {
    session: Arc<str>,
    id: EventId,
    data: Bytes,
    kept_at: Instant,
}

#[derive(Default)]
struct SessionEvents {
    /// The owner. A session without one is its own.
    owner: Option<Arc<str>>,
    bytes: usize,
    /// The numbers of its events.
    events: BTreeSet<u64>,
    streams: HashMap<u64, StreamEvents>,
}

#[derive(Default)]
struct StreamEvents {
    /// The position of the newest event.
    newest: u64,
    /// The position of the newest event that was dropped.
    dropped: u64,
    /// The numbers of its events, oldest first.
    events: VecDeque<u64>,
    ended: bool,
    opening: Bytes,
}

impl StoredEvent {
    fn cost(&self) -> usize {
        self.data.len() + OVERHEAD
    }
}

impl EventTable {
    fn session(&mut self, name: &str) -> (Arc<str>, &mut SessionEvents) {
        let key = match self.sessions.get_key_value(name) {
            Some((key, _)) => key.clone(),
            None => Arc::from(name),
        };
        (key.clone(), self.sessions.entry(key).or_default())
    }

    fn keep(&mut self, session: &str, id: EventId, data: Bytes, now: Instant) -> Appended {
        let number = self.next;
        let Some((name, _)) = self.sessions.get_key_value(session) else { return Appended::Gone };
        let name = name.clone();
        let Some(session) = self.sessions.get_mut(&name) else { return Appended::Gone };
        let Some(kept) = session.streams.get_mut(&id.stream).filter(|kept| !kept.ended) else {
            return Appended::Gone;
        };
        if id.place <= kept.newest {
            return Appended::Taken;
        }
        kept.newest = id.place;
        kept.events.push_back(number);
        let held = StoredEvent { session: name.clone(), id, data, kept_at: now };
        let cost = held.cost();
        session.events.insert(number);
        let (owner, before) = (session.owner.clone(), session.bytes);
        session.bytes += cost;
        self.weigh(name, owner, before, before + cost);
        self.bytes += cost;
        self.events.insert(number, held);
        self.next += 1;
        Appended::Done
    }

    fn describe(&mut self, session: &str, newest: EventId, opening: Bytes) -> Appended {
        let streams = self.sessions.get_mut(session).map(|session| &mut session.streams);
        match streams.and_then(|streams| streams.get_mut(&newest.stream)) {
            None => Appended::Gone,
            Some(stream) if stream.ended => Appended::Gone,
            Some(stream) if stream.newest != newest.place => Appended::Taken,
            Some(stream) => {
                stream.opening = opening;
                Appended::Done
            }
        }
    }

    fn after(&self, session: &str, last: EventId) -> Replay {
        let stream = self.sessions.get(session).and_then(|session| session.streams.get(&last.stream));
        let Some(stream) = stream.filter(|stream| (stream.dropped..=stream.newest).contains(&last.place))
        else {
            return Replay::Gone;
        };
        // Positions are consecutive, and events are dropped from the front.
        let seen = usize::try_from(last.place - stream.dropped).unwrap_or(usize::MAX);
        let missed = stream.events.iter().skip(seen).filter_map(|number| self.events.get(number));
        let events = missed.map(|held| Event::new(held.id, held.data.clone())).collect();
        Replay::Events(MissedEvents::new(events, stream.ended, stream.opening.clone()))
    }

    fn end(&mut self, session: &str, stream: u64) {
        let Some(streams) = self.sessions.get_mut(session).map(|session| &mut session.streams) else {
            return;
        };
        let Some(kept) = streams.get_mut(&stream) else { return };
        kept.ended = true;
        if kept.events.is_empty() {
            self.forget_stream(session, stream);
        }
    }

    fn forget_stream(&mut self, name: &str, stream: u64) {
        let Some((key, _)) = self.sessions.get_key_value(name) else { return };
        let key = key.clone();
        let Some(session) = self.sessions.get_mut(name) else { return };
        let before = session.bytes;
        for number in session.streams.remove(&stream).into_iter().flat_map(|stream| stream.events) {
            session.events.remove(&number);
            if let Some(held) = self.events.remove(&number) {
                session.bytes -= held.cost();
                self.bytes -= held.cost();
            }
        }
        let (owner, after) = (session.owner.clone(), session.bytes);
        if session.streams.is_empty() {
            self.sessions.remove(name);
        }
        self.weigh(key, owner, before, after);
    }

    fn forget_session(&mut self, name: &str) {
        let Some((key, session)) = self.sessions.remove_entry(name) else { return };
        self.weigh(key, session.owner, session.bytes, 0);
        self.bytes -= session.bytes;
        for number in session.events {
            self.events.remove(&number);
        }
    }

    /// Drops the oldest events while the condition holds.
    fn drop_while(&mut self, too_much: impl Fn(&Self, &StoredEvent) -> bool) {
        while let Some((&number, _)) = self.events.first_key_value().filter(|(_, held)| too_much(self, held))
        {
            self.drop_oldest(number);
        }
    }

    /// Drops the oldest events of the largest session of the largest owner until the size is within the limit.
    fn trim(&mut self, limit: usize) {
        while limit < self.bytes
            && let Some((_, owner)) = self.by_bytes.last()
            && let Some((_, name)) = self.owners.get(owner).and_then(|owner| owner.sessions.last())
            && let Some(&number) = self.sessions.get(name).and_then(|session| session.events.first())
        {
            self.drop_oldest(number);
        }
    }

    /// Sets the owner of a session before its first event.
    fn set_owner(&mut self, name: &str, owner: &str) {
        let known = self.owners.get_key_value(owner).map(|(key, _)| key.clone());
        let (_, session) = self.session(name);
        if session.bytes == 0 {
            session.owner = Some(known.unwrap_or_else(|| owner.into()));
        }
    }

    /// Updates the size of a session, and that of its owner.
    fn weigh(&mut self, name: Arc<str>, owner: Option<Arc<str>>, before: usize, after: usize) {
        let key = owner.unwrap_or_else(|| name.clone());
        let owner = self.owners.entry(key.clone()).or_default();
        let old = owner.bytes;
        owner.bytes = old - before + after;
        resize(&mut owner.sessions, name, before, after);
        resize(&mut self.by_bytes, key.clone(), old, owner.bytes);
        if owner.bytes == 0 {
            self.owners.remove(&key);
        }
    }

    fn trim_session(&mut self, name: &str, limit: usize) {
        while let Some(session) = self.sessions.get(name).filter(|session| limit < session.bytes)
            && let Some(&number) = session.events.first()
        {
            self.drop_oldest(number);
        }
    }

    /// Drops an event that is the oldest of its session, and so of its stream.
    fn drop_oldest(&mut self, number: u64) {
        let Some(held) = self.events.remove(&number) else { return };
        self.bytes -= held.cost();
        let Some(session) = self.sessions.get_mut(&held.session) else { return };
        let before = session.bytes;
        session.bytes -= held.cost();
        let owner = session.owner.clone();
        self.weigh(held.session.clone(), owner, before, before - held.cost());
        let Some(session) = self.sessions.get_mut(&held.session) else { return };
        session.events.remove(&number);
        let Some(stream) = session.streams.get_mut(&held.id.stream) else { return };
        stream.events.pop_front();
        stream.dropped = held.id.place;
        if stream.ended && stream.events.is_empty() {
            self.forget_stream(&held.session, held.id.stream);
        }
    }
}

/// Sets the size of something in an order by size.
fn resize(order: &mut BTreeSet<(usize, Arc<str>)>, name: Arc<str>, before: usize, after: usize) {
    if before > 0 {
        order.remove(&(before, name.clone()));
    }
    if after > 0 {
        order.insert((after, name));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Runs a future that is ready at once, as all of this log are.
    fn at_once<T>(stored: Stored<'_, T>) -> T {
        use std::{
            future::Future,
            pin::pin,
            task::{Context, Poll, Waker},
        };
        match pin!(stored).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(value)) => value,
            _ => panic!("it waits"),
        }
    }

    fn texts(replay: Replay) -> Option<Vec<String>> {
        let Replay::Events(missed) = replay else { return None };
        Some(missed.events.into_iter().map(|event| String::from_utf8(event.data.into()).unwrap()).collect())
    }

    /// Room for two events of ten bytes in a session, and for four in all.
    fn small() -> MemoryLog {
        let two = 2 * (10 + OVERHEAD);
        let age = Duration::from_secs(60);
        MemoryLog::new(LogBounds { session_bytes: two, total_bytes: 2 * two, age })
    }

    const TEN: &str = "0123456789";

    fn append(log: &MemoryLog, session: &str, stream: u64) -> EventId {
        append_data(log, session, stream, TEN.into())
    }

    /// Appends to a stream, which is opened if it is not known.
    fn append_data(log: &MemoryLog, session: &str, stream: u64, data: Bytes) -> EventId {
        at_once(log.open(session, stream, Bytes::new()));
        let newest = log.lock().sessions[session].streams[&stream].newest;
        let id = EventId { stream, place: newest + 1 };
        assert_eq!(at_once(log.append(session, id, data)), Appended::Done);
        id
    }

    fn replayed(log: &MemoryLog, session: &str, last: EventId) -> Option<usize> {
        texts(at_once(log.after(session, last))).map(|texts| texts.len())
    }

    #[tokio::test]
    async fn a_session_keeps_its_newest_events() {
        let log = small();
        let [first, second, third] = [1, 2, 1].map(|stream| append(&log, "a", stream));
        assert_eq!(replayed(&log, "a", EventId::start(1)), None, "its first event is gone");
        assert_eq!(replayed(&log, "a", first), Some(1), "but that one was seen");
        assert_eq!(replayed(&log, "a", EventId::start(2)), Some(1));
        assert_eq!(replayed(&log, "a", second), Some(0));
        assert_eq!(replayed(&log, "a", third), Some(0));
    }

    #[tokio::test]
    async fn the_session_that_has_most_gives_way_to_the_others() {
        let log = small();
        for session in ["a", "b", "c", "c", "b"] {
            append(&log, session, 1);
        }
        assert_eq!(replayed(&log, "a", EventId::start(1)), Some(1), "it is the oldest, and says little");
        assert_eq!(replayed(&log, "b", EventId::start(1)), Some(2));
        assert_eq!(replayed(&log, "c", EventId::start(1)), None);
        assert_eq!(replayed(&log, "c", EventId { stream: 1, place: 1 }), Some(1));
        assert_eq!(log.lock().bytes, 4 * (10 + OVERHEAD));
        // However many others there are.
        for n in 0..100 {
            append(&log, &format!("{}", n % 2), 1);
        }
        assert_eq!(replayed(&log, "a", EventId::start(1)), Some(1));
        assert_eq!(log.lock().bytes, 4 * (10 + OVERHEAD));
    }

    #[tokio::test]
    async fn an_event_beyond_the_bounds_is_not_kept_and_not_hidden() {
        let log = small();
        let first = append(&log, "a", 1);
        let large = append_data(&log, "a", 1, vec![b'7'; 1000].into());
        assert_eq!(replayed(&log, "a", first), None);
        assert_eq!(replayed(&log, "a", large), Some(0));
        assert_eq!(log.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn events_age() {
        let log = small();
        let first = append(&log, "a", 1);
        tokio::time::advance(Duration::from_secs(30)).await;
        let second = append(&log, "a", 1);
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(replayed(&log, "a", EventId::start(1)), Some(2));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(replayed(&log, "a", EventId::start(1)), None);
        assert_eq!(replayed(&log, "a", first), Some(1));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(replayed(&log, "a", first), None);
        assert_eq!(replayed(&log, "a", second), Some(0), "a quiet stream has missed nothing");
        assert_eq!(append(&log, "a", 1).place, 3, "and no id is given twice");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_left_of_what_is_over() {
        let log = small();
        append(&log, "aged", 1);
        at_once(log.end("aged", 1));
        at_once(log.open("empty", 1, Bytes::new()));
        at_once(log.end("empty", 1));
        tokio::time::advance(Duration::from_secs(60)).await;
        append(&log, "delivered", 1);
        at_once(log.forget_stream("delivered", 1));
        let _ = [1, 2].map(|stream| append(&log, "closed", stream));
        at_once(log.forget_session("closed"));
        assert_eq!(format!("{log:?}").split_once("sessions").unwrap().1, ": 0, events: 0, bytes: 0 }");
        assert!(log.lock().by_bytes.is_empty() && log.lock().owners.is_empty());
    }

    #[tokio::test]
    async fn many_small_sessions_of_one_owner_do_not_empty_a_large_one_of_another() {
        let cost = 10 + OVERHEAD;
        let log = MemoryLog::new(LogBounds {
            session_bytes: 10 * cost,
            total_bytes: 40 * cost,
            age: Duration::from_secs(60),
        });
        log.set_owner("mine", "ann");
        let first = append(&log, "mine", 1);
        for _ in 1..10 {
            append(&log, "mine", 1);
        }
        for n in 0..100 {
            let name = format!("flood-{n}");
            log.set_owner(&name, "eve");
            append(&log, &name, 1);
        }
        assert_eq!(replayed(&log, "mine", first), Some(9));
        assert_eq!(log.lock().bytes, 40 * cost);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Append(u8, u64),
        Forget(u8, u64),
        Close(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            20 => (0..3_u8, 0..4_u64).prop_map(|(session, stream)| Step::Append(session, stream)),
            2 => (0..3_u8, 0..4_u64).prop_map(|(session, stream)| Step::Forget(session, stream)),
            1 => (0..3_u8).prop_map(Step::Close),
        ]
    }

    proptest! {
        /// Whatever the last event was that a client saw: it gets exactly the later ones, in order, once; or it is told.
        #[test]
        fn every_last_event_id(steps in proptest::collection::vec(step(), 0..120), room in 0..40_usize) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let _guard = runtime.enter();
            let bytes = room * (OVERHEAD + 3);
            let log = MemoryLog::new(LogBounds { session_bytes: bytes, ..LogBounds::default() });
            let mut sent: BTreeMap<(u8, u64), Vec<(EventId, String)>> = BTreeMap::new();
            let mut appended = [0_usize; 3];
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Append(session, stream) => {
                        let data = format!("{n:03}");
                        let id = append_data(&log, &session.to_string(), stream, data.clone().into());
                        sent.entry((session, stream)).or_default().push((id, data));
                        appended[usize::from(session)] += 1;
                    }
                    Step::Forget(session, stream) => {
                        at_once(log.forget_stream(&session.to_string(), stream));
                        sent.remove(&(session, stream));
                    }
                    Step::Close(session) => {
                        at_once(log.forget_session(&session.to_string()));
                        sent.retain(|(other, _), _| *other != session);
                        appended[usize::from(session)] = 0;
                    }
                }
            }
            for session in 0..3_u8 {
                let all_fit = appended[usize::from(session)] <= room;
                for stream in 0..4 {
                    let events = sent.get(&(session, stream)).map_or(&[][..], |events| events);
                    let places = std::iter::once(EventId::start(stream)).chain(events.iter().map(|(id, _)| *id));
                    for (seen, last) in places.enumerate() {
                        let later: Vec<_> = events[seen..].iter().map(|(_, data)| data.clone()).collect();
                        match texts(at_once(log.after(&session.to_string(), last))) {
                            Some(replayed) => prop_assert_eq!(replayed, later),
                            None => prop_assert!(events.is_empty() || !all_fit, "nothing had to be dropped"),
                        }
                    }
                    let beyond = EventId { stream, place: events.len() as u64 + 1 };
                    prop_assert_eq!(texts(at_once(log.after(&session.to_string(), beyond))), None);
                }
                let kept = log.lock().sessions.get(session.to_string().as_str()).map_or(0, |kept| kept.events.len());
                prop_assert!(kept <= room);
            }
        }
    }
}
