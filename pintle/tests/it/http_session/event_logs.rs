//! The contract of event logs: it holds for ours, for one that waits, and is seen to be broken where it is.

use std::io;

use bytes::Bytes;
use pintle::server::{
    http::log::{Appended, EventId, EventLog, MemoryLog, Replay},
    store::Stored,
};
use pintle_testing::kits::{event_log, two_handles};

#[tokio::test]
async fn the_log_in_memory() {
    event_log::check(async || Ok(two_handles(MemoryLog::default()))).await.unwrap();
}

/// Answers like the one in memory, except where it is said to go wrong.
#[derive(Debug)]
struct Other {
    inner: MemoryLog,
    wrong: Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    ReplaysTheLast,
    LosesTheNewest,
    ForgetsTooLittle,
    ForgetsTooMuch,
    MixesSessions,
    Fails,
}

impl Other {
    fn session<'a>(&self, session: &'a str) -> &'a str {
        if self.wrong == Wrong::MixesSessions { "all" } else { session }
    }
}

/// Each answer comes only the second time it is asked for, as if from elsewhere.
fn waited<'a, T: Send + 'a>(stored: Stored<'a, T>) -> Stored<'a, T> {
    Stored::later(async {
        tokio::task::yield_now().await;
        stored.await
    })
}

impl EventLog for Other {
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        waited(self.inner.open(self.session(session), stream, opening))
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        match self.wrong {
            Wrong::Fails => Stored::later(async { Err(io::Error::other("no space left")) }),
            _ => waited(self.inner.append(self.session(session), id, data)),
        }
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        match self.wrong {
            Wrong::Fails => Stored::later(async { Err(io::Error::other("no space left")) }),
            _ => waited(self.inner.append_last(self.session(session), id, data)),
        }
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        waited(self.inner.describe(self.session(session), newest, opening))
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        let session = self.session(session);
        match self.wrong {
            Wrong::ReplaysTheLast if last.place > 0 => {
                waited(self.inner.after(session, EventId { place: last.place - 1, ..last }))
            }
            Wrong::LosesTheNewest => Stored::later(async move {
                let mut replay = self.inner.after(session, last).await?;
                if let Replay::Events(missed) = &mut replay {
                    missed.events.pop();
                }
                Ok(replay)
            }),
            _ => waited(self.inner.after(session, last)),
        }
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        match self.wrong {
            Wrong::ForgetsTooMuch => waited(self.inner.forget_stream(self.session(session), stream)),
            _ => waited(self.inner.end(self.session(session), stream)),
        }
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        match self.wrong {
            Wrong::ForgetsTooLittle => Stored::now(()),
            _ => waited(self.inner.forget_stream(self.session(session), stream)),
        }
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        waited(self.inner.forget_session(self.session(session)))
    }
}

/// The properties that the kit finds broken.
async fn broken(wrong: Wrong) -> Vec<&'static str> {
    let checked =
        event_log::check(async || Ok(two_handles(Other { inner: MemoryLog::default(), wrong }))).await;
    checked.err().unwrap_or_default().iter().map(|broken| broken.property).collect()
}

#[tokio::test]
async fn a_log_that_waits_may_be_right() {
    assert!(broken(Wrong::Nothing).await.is_empty());
}

#[tokio::test]
async fn what_is_wrong_is_found() {
    for (wrong, property) in [
        (Wrong::ReplaysTheLast, "every id is followed by exactly the later events"),
        (Wrong::LosesTheNewest, "every id is followed by exactly the later events"),
        (Wrong::ForgetsTooLittle, "a stream that was forgotten is gone"),
        (Wrong::ForgetsTooMuch, "a stream that has ended can be resumed"),
        (Wrong::MixesSessions, "sessions are independent of each other"),
        (Wrong::Fails, "streams are independent of each other"),
    ] {
        let found = broken(wrong).await;
        assert!(found.contains(&property), "{wrong:?}: {found:?}");
    }
}
