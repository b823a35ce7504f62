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

use std::{collections::BTreeSet, future::Future, io, sync::Arc};

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{EventId, EventLog, Replay};
use crate::{
    properties::{Property, PropertyResult, check as check_properties},
    transport::kit::Broken,
};

/// Checks every property on a log that `open` gives.
///
/// It may give the same one each time: every property has sessions of its own. The log has to have room for 64 KiB in
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
    check_properties(&PROPERTIES, async || open().await.map(|log| Arc::new(log) as Log)).await
}

type Log = Arc<dyn EventLog>;

const PROPERTIES: [Property<Log>; 9] = [
    ("every id is followed by exactly the later events", |log| Box::pin(every_id(log))),
    ("streams do not hear each other", |log| Box::pin(streams(log))),
    ("sessions do not hear each other", |log| Box::pin(sessions(log))),
    ("a stream that was opened can be resumed from its start", |log| Box::pin(opened(log))),
    ("an id that was not given out is gone", |log| Box::pin(unknown(log))),
    ("a stream that has ended can be resumed", |log| Box::pin(ended(log))),
    ("a stream that was forgotten is gone", |log| Box::pin(stream_forgotten(log))),
    ("a session that was forgotten is gone", |log| Box::pin(session_forgotten(log))),
    ("what many append at once is kept once, in the order of its ids", |log| Box::pin(at_once(log))),
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
    if !ids.is_sorted_by(|left, right| left < right) || ids.iter().any(|id| id.stream != 1) {
        return Err(format!("the ids do not ascend: {ids:?}"));
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
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(append(&log, "streams", n % 3, n.to_string()).await?);
    }
    if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
        return Err(format!("an id was given twice: {ids:?}"));
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
    let start = log.open("opened", 7).await.map_err(failed)?;
    if start.stream != 7 {
        return Err(format!("stream 7 begins at `{start}`"));
    }
    expect(&log, "opened", start, &[]).await?;
    append(&log, "opened", 7, "first").await?;
    log.open("opened", 7).await.map_err(failed)?;
    expect(&log, "opened", start, &["first".to_owned()]).await
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
    append(&log, "ended", 1, "result").await?;
    log.end("ended", 1).await.map_err(failed)?;
    expect(&log, "ended", first, &["result".to_owned()]).await?;
    // What is not known has ended too.
    log.end("ended", 2).await.map_err(failed)?;
    log.end("ended-too", 1).await.map_err(failed)
}

async fn stream_forgotten(log: Log) -> PropertyResult {
    let first = append(&log, "delivered", 1, "result").await?;
    append(&log, "delivered", 2, "other").await?;
    for stream in [1, 1, 3] {
        log.forget_stream("delivered", stream).await.map_err(failed)?;
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
        log.forget_session(session).await.map_err(failed)?;
    }
    gone(&log, "closed-a", EventId::start(1)).await?;
    gone(&log, "closed-a", EventId::start(2)).await?;
    expect(&log, "closed-b", EventId::start(2), &["two".to_owned()]).await
}

async fn at_once(log: Log) -> PropertyResult {
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let log = log.clone();
        writers.spawn(async move {
            let mut given = Vec::new();
            for n in 0..10 {
                let text = format!("{writer}/{n}");
                given.push((append(&log, "at-once", 1, text.clone()).await?, Bytes::from(text)));
                tokio::task::yield_now().await;
            }
            Ok::<_, String>(given)
        });
    }
    let mut given = Vec::new();
    while let Some(part) = writers.join_next().await {
        given.extend(part.map_err(|error| format!("it failed: {error}"))??);
    }
    given.sort();
    match after(&log, "at-once", EventId::start(1)).await? {
        Some(events) if events == given => Ok(()),
        Some(events) => Err(format!("of {} events {} came: {:?}", given.len(), events.len(), names(&events))),
        None => Err("it is gone".into()),
    }
}

async fn append(log: &Log, session: &str, stream: u64, data: impl Into<Bytes>) -> Result<EventId, String> {
    log.append(session, stream, data.into()).await.map_err(failed)
}

async fn after(log: &Log, session: &str, last: EventId) -> Result<Option<Vec<(EventId, Bytes)>>, String> {
    match log.after(session, last).await.map_err(failed)? {
        Replay::Events(events) => Ok(Some(events.into_iter().map(|event| (event.id, event.data)).collect())),
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
