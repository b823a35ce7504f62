//! Checks an event log that you wrote: whether a client that comes back gets exactly what it missed.
//!
//! ```
//! use pintle::server::http::log::MemoryLog;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let open = async || Ok(kits::two_handles(MemoryLog::default()));
//! if let Err(broken) = kits::event_log::check(open).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{io, sync::Arc};

use bytes::Bytes;
use pintle::server::http::log::{Appended, EventId, EventLog, Replay};

use super::harness::{Broken, Check, Checked, Handles, at_once, wrong};

/// Checks every property, with two handles of one log that `open` returns: as two processes have them.
///
/// It may return the same log each time: every property has sessions of its own. The log has to have room for 64 KiB in
/// each.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<L: EventLog>(open: impl AsyncFn() -> io::Result<[L; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || {
        let [one, other] = open().await?;
        Ok(Handles { one: Arc::new(one) as Arc<dyn EventLog>, other: Arc::new(other) })
    });
    check.that("every id is followed by exactly the later events", every_id).await;
    check.that("streams are independent of each other", streams).await;
    check.that("sessions are independent of each other", sessions).await;
    check.that("a stream that was opened can be resumed from its start", opened).await;
    check.that("the description of a stream is that of its first opening", described).await;
    check.that("who knows the newest event replaces the description of its stream", redescribed).await;
    check.that("an id that was not given out is gone", unknown).await;
    check.that("a stream that has ended can be resumed", ended).await;
    check.that("the last event ends its stream", ended_with).await;
    check.that("nothing is appended to a stream that is unknown, forgotten or ended", closed).await;
    check.that("a position is taken once", taken).await;
    check.that("of two writers of one position one is refused", two_writers).await;
    check.that("a stream that was forgotten is gone", stream_forgotten).await;
    check.that("a session that was forgotten is gone", session_forgotten).await;
    check.that("a large event is kept whole", large).await;
    check.end()
}

/// Two handles of one log: events are appended to the first, and read from the second.
type Log = Handles<dyn EventLog>;

async fn every_id(log: Log) -> Checked {
    // Also nothing at all, line ends, bytes that are no text, and a large one.
    let mut sent: Vec<Bytes> = (0..50).map(|n| Bytes::from(format!(r#"{{"n":{n}}}"#))).collect();
    sent.extend([Bytes::new(), Bytes::from_static(b"a\r\nb\n\n"), Bytes::from_static(&[0, 255, 254])]);
    sent.push(vec![b'x'; 20_000].into());
    let mut ids = vec![EventId::start(1)];
    for data in &sent {
        ids.push(append(&log, "every-id", 1, data.clone()).await?);
    }
    for (seen, last) in ids.iter().enumerate() {
        let Some(events) = after(&log, "every-id", *last).await? else {
            return wrong(format!("what followed `{last}` is gone"));
        };
        let expected = ids[seen + 1..].iter().copied().zip(sent[seen..].iter().cloned());
        if !events.iter().cloned().eq(expected) {
            return wrong(format!("after `{last}` came {} events: {:?}", events.len(), names(&events)));
        }
    }
    Ok(())
}

async fn streams(log: Log) -> Checked {
    for n in 0..10 {
        append(&log, "streams", n % 3, n.to_string()).await?;
    }
    for stream in 0..3 {
        let expected: Vec<_> = (0..10).filter(|n| n % 3 == stream).map(|n: u64| n.to_string()).collect();
        expect(&log, "streams", EventId::start(stream), &expected).await?;
    }
    Ok(())
}

async fn sessions(log: Log) -> Checked {
    append(&log, "sessions-a", 1, "a").await?;
    append(&log, "sessions-b", 1, "b").await?;
    expect(&log, "sessions-a", EventId::start(1), &["a".to_owned()]).await?;
    expect(&log, "sessions-b", EventId::start(1), &["b".to_owned()]).await
}

async fn opened(log: Log) -> Checked {
    let start = EventId::start(7);
    log.one.open("opened", 7, Bytes::new()).await?;
    expect(&log, "opened", start, &[]).await?;
    append(&log, "opened", 7, "first").await?;
    log.other.open("opened", 7, Bytes::new()).await?;
    expect(&log, "opened", start, &["first".to_owned()]).await
}

async fn described(log: Log) -> Checked {
    let opening = Bytes::from_static(b"{\"node\":\"\xe4\xb8\x96\r\n\0\"}");
    log.one.open("described", 1, opening.clone()).await?;
    log.other.open("described", 1, Bytes::from_static(b"another")).await?;
    append(&log, "described", 1, "one").await?;
    for place in 0..2 {
        match log.other.after("described", EventId { stream: 1, place }).await? {
            Replay::Events(missed) if missed.opening == opening && !missed.ended => {}
            other => return wrong(format!("expected an open stream with its description, found {other:?}")),
        }
    }
    Ok(())
}

async fn redescribed(log: Log) -> Checked {
    let start = EventId::start(1);
    let describe = async |newest: EventId, text: &'static str, expected: Appended| {
        let described = log.other.describe("redescribed", newest, Bytes::from_static(text.as_bytes()));
        match described.await? {
            found if found == expected => Ok(()),
            other => wrong(format!("`describe` at `{newest}` returned {other:?}, and not {expected:?}")),
        }
    };
    describe(start, "unknown", Appended::Gone).await?;
    log.one.open("redescribed", 1, Bytes::from_static(b"first")).await?;
    describe(start, "second", Appended::Done).await?;
    let event = append(&log, "redescribed", 1, "one").await?;
    describe(start, "late", Appended::Taken).await?;
    describe(event, "third", Appended::Done).await?;
    match log.one.after("redescribed", start).await? {
        Replay::Events(missed) if &*missed.opening == b"third" && missed.events.len() == 1 => {}
        other => return wrong(format!("expected an event and the newest description, found {other:?}")),
    }
    log.one.end("redescribed", 1).await?;
    describe(event, "ended", Appended::Gone).await
}

async fn unknown(log: Log) -> Checked {
    gone(&log, "unknown", EventId::start(1)).await?;
    let last = append(&log, "unknown", 1, "only").await?;
    gone(&log, "unknown", EventId::start(2)).await?;
    gone(&log, "unknown", EventId { place: last.place + 1, ..last }).await?;
    gone(&log, "unknown", EventId { place: u64::MAX, ..last }).await?;
    gone(&log, "unknown-too", last).await
}

async fn ended(log: Log) -> Checked {
    let first = append(&log, "ended", 1, "progress").await?;
    let last = append(&log, "ended", 1, "result").await?;
    log.one.end("ended", 1).await?;
    expect(&log, "ended", first, &["result".to_owned()]).await?;
    for seen in [first, last] {
        match log.other.after("ended", seen).await? {
            Replay::Events(missed) if missed.ended => {}
            other => return wrong(format!("the stream has ended, and its replay is {other:?}")),
        }
    }
    // A stream may be ended again, and one that is unknown.
    log.other.end("ended", 1).await?;
    log.one.end("ended", 2).await?;
    log.one.end("ended-too", 1).await?;
    gone(&log, "ended", EventId::start(2)).await?;
    gone(&log, "ended", EventId { place: last.place + 1, ..last }).await
}

async fn ended_with(log: Log) -> Checked {
    let first = append(&log, "ended-with", 1, "progress").await?;
    let append_last = async |handle: &Arc<dyn EventLog>, place, expected| {
        let id = EventId { place, ..first };
        match handle.append_last("ended-with", id, Bytes::from_static(b"result")).await? {
            appended if appended == expected => Ok(()),
            other => wrong(format!("`append_last` of `{id}` returned {other:?}, expected {expected:?}")),
        }
    };
    // A writer that is refused does not end the stream.
    append_last(&log.other, 1, Appended::Taken).await?;
    match log.other.after("ended-with", first).await? {
        Replay::Events(missed) if !missed.ended => {}
        other => return wrong(format!("the stream is open, and its replay is {other:?}")),
    }
    append_last(&log.one, 2, Appended::Done).await?;
    append_last(&log.other, 3, Appended::Gone).await?;
    match log.other.after("ended-with", first).await? {
        Replay::Events(missed) if missed.ended && missed.events.len() == 1 => Ok(()),
        other => wrong(format!("the stream has ended with one event, and its replay is {other:?}")),
    }
}

async fn closed(log: Log) -> Checked {
    let refused = async |session: &str, id: EventId| match log
        .one
        .append(session, id, Bytes::from_static(b"late"))
        .await?
    {
        Appended::Gone => Ok(()),
        other => wrong(format!("`append` of `{id}` returned {other:?}")),
    };
    refused("closed", EventId { stream: 1, place: 1 }).await?;
    let last = append(&log, "closed", 1, "one").await?;
    log.other.forget_stream("closed", 1).await?;
    refused("closed", EventId { place: last.place + 1, ..last }).await?;
    gone(&log, "closed", last).await?;
    let last = append(&log, "closed", 3, "one").await?;
    log.other.end("closed", 3).await?;
    refused("closed", EventId { place: last.place + 1, ..last }).await?;
    let last = append(&log, "closed", 5, "one").await?;
    log.other.forget_session("closed").await?;
    refused("closed", EventId { place: last.place + 1, ..last }).await?;
    gone(&log, "closed", last).await
}

async fn taken(log: Log) -> Checked {
    let first = append(&log, "taken", 1, "one").await?;
    append(&log, "taken", 1, "two").await?;
    for handle in [&log.one, &log.other] {
        for place in 1..=2 {
            let id = EventId { place, ..first };
            match handle.append("taken", id, Bytes::from_static(b"other")).await? {
                Appended::Taken => {}
                other => return wrong(format!("`append` of `{id}` returned {other:?}")),
            }
        }
    }
    expect(&log, "taken", EventId::start(1), &["one".to_owned(), "two".to_owned()]).await
}

async fn large(log: Log) -> Checked {
    let data = Bytes::from(vec![b'x'; 60_000]);
    append(&log, "large", 1, data.clone()).await?;
    match after(&log, "large", EventId::start(1)).await? {
        Some(events) if events.len() == 1 && events[0].1 == data => Ok(()),
        _ => wrong("it is gone, or another"),
    }
}

async fn stream_forgotten(log: Log) -> Checked {
    let first = append(&log, "delivered", 1, "result").await?;
    append(&log, "delivered", 2, "other").await?;
    for stream in [1, 1, 3] {
        log.other.forget_stream("delivered", stream).await?;
    }
    gone(&log, "delivered", first).await?;
    gone(&log, "delivered", EventId::start(1)).await?;
    expect(&log, "delivered", EventId::start(2), &["other".to_owned()]).await
}

async fn session_forgotten(log: Log) -> Checked {
    for session in ["closed-a", "closed-b"] {
        append(&log, session, 1, "one").await?;
        append(&log, session, 2, "two").await?;
    }
    for session in ["closed-a", "closed-a", "closed-c"] {
        log.other.forget_session(session).await?;
    }
    gone(&log, "closed-a", EventId::start(1)).await?;
    gone(&log, "closed-a", EventId::start(2)).await?;
    expect(&log, "closed-b", EventId::start(2), &["two".to_owned()]).await
}

async fn two_writers(log: Log) -> Checked {
    log.one.open("at-once", 1, Bytes::new()).await?;
    let mut expected = Vec::new();
    for place in 1..=8 {
        let id = EventId { stream: 1, place };
        let writers = (0..8).map(|writer| {
            let (handle, text) = (log.of_turn(writer), format!("{writer}/{place}"));
            async move { (handle.append("at-once", id, text.clone().into()).await, text) }
        });
        for written in at_once(writers).await? {
            match written {
                (Ok(Appended::Done), text) => expected.push(text),
                (Ok(Appended::Taken), _) => {}
                (other, _) => return wrong(format!("`append` of `{id}` returned {other:?}")),
            }
        }
    }
    expect(&log, "at-once", EventId::start(1), &expected).await
}

/// Appends to a stream, which is opened if it is unknown.
async fn append(log: &Log, session: &str, stream: u64, data: impl Into<Bytes>) -> Checked<EventId> {
    log.one.open(session, stream, Bytes::new()).await?;
    let newest = after(log, session, EventId::start(stream)).await?;
    let newest = newest.ok_or("a stream that was opened is gone")?.last().map_or(0, |(id, _)| id.place);
    let id = EventId { stream, place: newest + 1 };
    match log.one.append(session, id, data.into()).await? {
        Appended::Done => Ok(id),
        other => wrong(format!("`append` of `{id}` returned {other:?}")),
    }
}

async fn after(log: &Log, session: &str, last: EventId) -> Checked<Option<Vec<(EventId, Bytes)>>> {
    match log.other.after(session, last).await? {
        Replay::Events(missed) => {
            Ok(Some(missed.events.into_iter().map(|event| (event.id, event.data)).collect()))
        }
        Replay::Gone => Ok(None),
    }
}

async fn expect(log: &Log, session: &str, last: EventId, texts: &[String]) -> Checked {
    match after(log, session, last).await? {
        Some(events) if events.iter().map(|(_, data)| &data[..]).eq(texts.iter().map(String::as_bytes)) => {
            Ok(())
        }
        Some(events) => wrong(format!("after `{last}` should come {texts:?}, not {:?}", names(&events))),
        None => wrong(format!("after `{last}` should come {texts:?}, and it is gone")),
    }
}

async fn gone(log: &Log, session: &str, last: EventId) -> Checked {
    match after(log, session, last).await? {
        None => Ok(()),
        Some(events) => wrong(format!("after `{last}` came {:?}", names(&events))),
    }
}

fn names(events: &[(EventId, Bytes)]) -> Vec<String> {
    let shown = |data: &Bytes| String::from_utf8_lossy(&data[..data.len().min(20)]).into_owned();
    events.iter().take(10).map(|(id, data)| format!("{id}: {}", shown(data))).collect()
}
