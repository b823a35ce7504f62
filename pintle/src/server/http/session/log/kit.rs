//! Checks an event log that you wrote: whether a client that comes back gets exactly what it missed.
//!
//! ```
//! use pintle::server::http::log::{MemoryLog, kit};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! if let Err(broken) = kit::check(|| async { Ok(MemoryLog::default()) }).await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

use std::{future::Future, io, sync::Arc};

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{Appended, EventId, EventLog, Replay};
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    transport::kit::Broken,
};

/// Checks every property, with two handles of one log that `open` returns: as two processes have them.
///
/// It may return the same log each time: every property has sessions of its own. The log has to have room for 64 KiB in
/// each. It takes the time the log takes, and ten seconds for each property that hangs; run it under real time.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<L, F>(open: impl Fn() -> F) -> Result<(), Vec<Broken>>
where
    L: EventLog,
    F: Future<Output = io::Result<L>>,
{
    check_pairs(async || {
        let log = Arc::new(open().await?);
        Ok((log.clone(), log))
    })
    .await
}

/// Checks every property, with two handles that `open` returns: two connections to one log.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check_pairs<L: EventLog>(open: impl AsyncFn() -> io::Result<(L, L)>) -> Result<(), Vec<Broken>> {
    check_properties(&PROPERTIES, async || {
        open().await.map(|(one, other)| Log { one: Arc::new(one), other: Arc::new(other) })
    })
    .await
}

/// Two handles of one log: events are appended to the first, and read from the second.
#[derive(Clone)]
struct Log {
    one: Arc<dyn EventLog>,
    other: Arc<dyn EventLog>,
}

const PROPERTIES: [Property<Log>; 15] = [
    ("every id is followed by exactly the later events", |log| Box::pin(every_id(log))),
    ("streams are independent of each other", |log| Box::pin(streams(log))),
    ("sessions are independent of each other", |log| Box::pin(sessions(log))),
    ("a stream that was opened can be resumed from its start", |log| Box::pin(opened(log))),
    ("the description of a stream is that of its first opening", |log| Box::pin(described(log))),
    ("who knows the newest event replaces the description of its stream", |log| Box::pin(redescribed(log))),
    ("an id that was not given out is gone", |log| Box::pin(unknown(log))),
    ("a stream that has ended can be resumed", |log| Box::pin(ended(log))),
    ("the last event ends its stream", |log| Box::pin(ended_with(log))),
    ("nothing is appended to a stream that is unknown, forgotten or ended", |log| Box::pin(closed(log))),
    ("a position is taken once", |log| Box::pin(taken(log))),
    ("of two writers of one position one is refused", |log| Box::pin(at_once(log))),
    ("a stream that was forgotten is gone", |log| Box::pin(stream_forgotten(log))),
    ("a session that was forgotten is gone", |log| Box::pin(session_forgotten(log))),
    ("a large event is kept whole", |log| Box::pin(large(log))),
];

async fn every_id(log: Log) -> PropertyResult {
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
            return Err(format!("what followed `{last}` is gone"));
        };
        let expected = ids[seen + 1..].iter().copied().zip(sent[seen..].iter().cloned());
        if !events.iter().cloned().eq(expected) {
            return Err(format!("after `{last}` came {} events: {:?}", events.len(), names(&events)));
        }
    }
    Ok(())
}

async fn streams(log: Log) -> PropertyResult {
    for n in 0..10 {
        append(&log, "streams", n % 3, n.to_string()).await?;
    }
    for stream in 0..3 {
        let expected: Vec<_> = (0..10).filter(|n| n % 3 == stream).map(|n: u64| n.to_string()).collect();
        expect(&log, "streams", EventId::start(stream), &expected).await?;
    }
    Ok(())
}

async fn sessions(log: Log) -> PropertyResult {
    append(&log, "sessions-a", 1, "a").await?;
    append(&log, "sessions-b", 1, "b").await?;
    expect(&log, "sessions-a", EventId::start(1), &["a".to_owned()]).await?;
    expect(&log, "sessions-b", EventId::start(1), &["b".to_owned()]).await
}

async fn opened(log: Log) -> PropertyResult {
    let start = EventId::start(7);
    log.one.open("opened", 7, Bytes::new()).await.map_err(failed)?;
    expect(&log, "opened", start, &[]).await?;
    append(&log, "opened", 7, "first").await?;
    log.other.open("opened", 7, Bytes::new()).await.map_err(failed)?;
    expect(&log, "opened", start, &["first".to_owned()]).await
}

async fn described(log: Log) -> PropertyResult {
    let opening = Bytes::from_static(b"{\"node\":\"\xe4\xb8\x96\r\n\0\"}");
    log.one.open("described", 1, opening.clone()).await.map_err(failed)?;
    log.other.open("described", 1, Bytes::from_static(b"another")).await.map_err(failed)?;
    append(&log, "described", 1, "one").await?;
    for place in 0..2 {
        match log.other.after("described", EventId { stream: 1, place }).await.map_err(failed)? {
            Replay::Events(missed) if missed.opening == opening && !missed.ended => {}
            other => return Err(format!("expected an open stream with its description, found {other:?}")),
        }
    }
    Ok(())
}

async fn redescribed(log: Log) -> PropertyResult {
    let start = EventId::start(1);
    let describe = async |newest: EventId, text: &'static str, expected: Appended| {
        let described = log.other.describe("redescribed", newest, Bytes::from_static(text.as_bytes()));
        match described.await.map_err(failed)? {
            found if found == expected => Ok(()),
            other => Err(format!("`describe` at `{newest}` returned {other:?}, and not {expected:?}")),
        }
    };
    describe(start, "unknown", Appended::Gone).await?;
    log.one.open("redescribed", 1, Bytes::from_static(b"first")).await.map_err(failed)?;
    describe(start, "second", Appended::Done).await?;
    let event = append(&log, "redescribed", 1, "one").await?;
    describe(start, "late", Appended::Taken).await?;
    describe(event, "third", Appended::Done).await?;
    match log.one.after("redescribed", start).await.map_err(failed)? {
        Replay::Events(missed) if &*missed.opening == b"third" && missed.events.len() == 1 => {}
        other => return Err(format!("expected an event and the newest description, found {other:?}")),
    }
    log.one.end("redescribed", 1).await.map_err(failed)?;
    describe(event, "ended", Appended::Gone).await
}

async fn unknown(log: Log) -> PropertyResult {
    gone(&log, "unknown", EventId::start(1)).await?;
    let last = append(&log, "unknown", 1, "only").await?;
    gone(&log, "unknown", EventId::start(2)).await?;
    gone(&log, "unknown", EventId { place: last.place + 1, ..last }).await?;
    gone(&log, "unknown", EventId { place: u64::MAX, ..last }).await?;
    gone(&log, "unknown-too", last).await
}

async fn ended(log: Log) -> PropertyResult {
    let first = append(&log, "ended", 1, "progress").await?;
    let last = append(&log, "ended", 1, "result").await?;
    log.one.end("ended", 1).await.map_err(failed)?;
    expect(&log, "ended", first, &["result".to_owned()]).await?;
    for seen in [first, last] {
        match log.other.after("ended", seen).await.map_err(failed)? {
            Replay::Events(missed) if missed.ended => {}
            other => return Err(format!("the stream has ended, and its replay is {other:?}")),
        }
    }
    // A stream may be ended again, and one that is unknown.
    log.other.end("ended", 1).await.map_err(failed)?;
    log.one.end("ended", 2).await.map_err(failed)?;
    log.one.end("ended-too", 1).await.map_err(failed)?;
    gone(&log, "ended", EventId::start(2)).await?;
    gone(&log, "ended", EventId { place: last.place + 1, ..last }).await
}

async fn ended_with(log: Log) -> PropertyResult {
    let first = append(&log, "ended-with", 1, "progress").await?;
    let append_last = async |handle: &Arc<dyn EventLog>, place, expected| {
        let id = EventId { place, ..first };
        match handle.append_last("ended-with", id, Bytes::from_static(b"result")).await.map_err(failed)? {
            appended if appended == expected => Ok(()),
            other => Err(format!("`append_last` of `{id}` returned {other:?}, expected {expected:?}")),
        }
    };
    // A writer that is refused does not end the stream.
    append_last(&log.other, 1, Appended::Taken).await?;
    match log.other.after("ended-with", first).await.map_err(failed)? {
        Replay::Events(missed) if !missed.ended => {}
        other => return Err(format!("the stream is open, and its replay is {other:?}")),
    }
    append_last(&log.one, 2, Appended::Done).await?;
    append_last(&log.other, 3, Appended::Gone).await?;
    match log.other.after("ended-with", first).await.map_err(failed)? {
        Replay::Events(missed) if missed.ended && missed.events.len() == 1 => Ok(()),
        other => Err(format!("the stream has ended with one event, and its replay is {other:?}")),
    }
}

async fn closed(log: Log) -> PropertyResult {
    let refused = async |session: &str, id: EventId| match log
        .one
        .append(session, id, Bytes::from_static(b"late"))
        .await
        .map_err(failed)?
    {
        Appended::Gone => Ok(()),
        other => Err(format!("`append` of `{id}` returned {other:?}")),
    };
    refused("closed", EventId { stream: 1, place: 1 }).await?;
    let last = append(&log, "closed", 1, "one").await?;
    log.other.forget_stream("closed", 1).await.map_err(failed)?;
    refused("closed", EventId { place: last.place + 1, ..last }).await?;
    gone(&log, "closed", last).await?;
    let last = append(&log, "closed", 3, "one").await?;
    log.other.end("closed", 3).await.map_err(failed)?;
    refused("closed", EventId { place: last.place + 1, ..last }).await?;
    let last = append(&log, "closed", 5, "one").await?;
    log.other.forget_session("closed").await.map_err(failed)?;
    refused("closed", EventId { place: last.place + 1, ..last }).await?;
    gone(&log, "closed", last).await
}

async fn taken(log: Log) -> PropertyResult {
    let first = append(&log, "taken", 1, "one").await?;
    append(&log, "taken", 1, "two").await?;
    for handle in [&log.one, &log.other] {
        for place in 1..=2 {
            let id = EventId { place, ..first };
            match handle.append("taken", id, Bytes::from_static(b"other")).await.map_err(failed)? {
                Appended::Taken => {}
                other => return Err(format!("`append` of `{id}` returned {other:?}")),
            }
        }
    }
    expect(&log, "taken", EventId::start(1), &["one".to_owned(), "two".to_owned()]).await
}

async fn large(log: Log) -> PropertyResult {
    let data = Bytes::from(vec![b'x'; 60_000]);
    append(&log, "large", 1, data.clone()).await?;
    match after(&log, "large", EventId::start(1)).await? {
        Some(events) if events.len() == 1 && events[0].1 == data => Ok(()),
        _ => Err("it is gone, or another".into()),
    }
}

async fn stream_forgotten(log: Log) -> PropertyResult {
    let first = append(&log, "delivered", 1, "result").await?;
    append(&log, "delivered", 2, "other").await?;
    for stream in [1, 1, 3] {
        log.other.forget_stream("delivered", stream).await.map_err(failed)?;
    }
    gone(&log, "delivered", first).await?;
    gone(&log, "delivered", EventId::start(1)).await?;
    expect(&log, "delivered", EventId::start(2), &["other".to_owned()]).await
}

async fn session_forgotten(log: Log) -> PropertyResult {
    for session in ["closed-a", "closed-b"] {
        append(&log, session, 1, "one").await?;
        append(&log, session, 2, "two").await?;
    }
    for session in ["closed-a", "closed-a", "closed-c"] {
        log.other.forget_session(session).await.map_err(failed)?;
    }
    gone(&log, "closed-a", EventId::start(1)).await?;
    gone(&log, "closed-a", EventId::start(2)).await?;
    expect(&log, "closed-b", EventId::start(2), &["two".to_owned()]).await
}

async fn at_once(log: Log) -> PropertyResult {
    log.one.open("at-once", 1, Bytes::new()).await.map_err(failed)?;
    let mut expected = Vec::new();
    for place in 1..=8 {
        let id = EventId { stream: 1, place };
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let log = log.clone();
            writers.spawn(async move {
                let handle = if writer % 2 == 0 { log.one } else { log.other };
                let text = format!("{writer}/{place}");
                (handle.append("at-once", id, text.clone().into()).await, text)
            });
        }
        while let Some(written) = writers.join_next().await {
            match written.map_err(|error| format!("it failed: {error}"))? {
                (Ok(Appended::Done), text) => expected.push(text),
                (Ok(Appended::Taken), _) => {}
                (other, _) => return Err(format!("`append` of `{id}` returned {other:?}")),
            }
        }
    }
    expect(&log, "at-once", EventId::start(1), &expected).await
}

/// Appends to a stream, which is opened if it is unknown.
async fn append(log: &Log, session: &str, stream: u64, data: impl Into<Bytes>) -> Result<EventId, String> {
    log.one.open(session, stream, Bytes::new()).await.map_err(failed)?;
    let newest = after(log, session, EventId::start(stream)).await?;
    let newest = newest.ok_or("a stream that was opened is gone")?.last().map_or(0, |(id, _)| id.place);
    let id = EventId { stream, place: newest + 1 };
    match log.one.append(session, id, data.into()).await.map_err(failed)? {
        Appended::Done => Ok(id),
        other => Err(format!("`append` of `{id}` returned {other:?}")),
    }
}

async fn after(log: &Log, session: &str, last: EventId) -> Result<Option<Vec<(EventId, Bytes)>>, String> {
    match log.other.after(session, last).await.map_err(failed)? {
        Replay::Events(missed) => {
            Ok(Some(missed.events.into_iter().map(|event| (event.id, event.data)).collect()))
        }
        Replay::Gone => Ok(None),
    }
}

async fn expect(log: &Log, session: &str, last: EventId, texts: &[String]) -> PropertyResult {
    match after(log, session, last).await? {
        Some(events) if events.iter().map(|(_, data)| &data[..]).eq(texts.iter().map(String::as_bytes)) => {
            Ok(())
        }
        Some(events) => Err(format!("after `{last}` should come {texts:?}, not {:?}", names(&events))),
        None => Err(format!("after `{last}` should come {texts:?}, and it is gone")),
    }
}

async fn gone(log: &Log, session: &str, last: EventId) -> PropertyResult {
    match after(log, session, last).await? {
        None => Ok(()),
        Some(events) => Err(format!("after `{last}` came {:?}", names(&events))),
    }
}

fn names(events: &[(EventId, Bytes)]) -> Vec<String> {
    let shown = |data: &Bytes| String::from_utf8_lossy(&data[..data.len().min(20)]).into_owned();
    events.iter().take(10).map(|(id, data)| format!("{id}: {}", shown(data))).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is given away")]
fn failed(error: io::Error) -> String {
    format!("the log failed: {error}")
}
