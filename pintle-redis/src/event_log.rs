//! Event logs: a Redis stream for each stream of a session.
//!
//! The id of an entry is the position of its event, so Redis refuses a second event at a position: that is the fence. `0-1` is the
//! first entry of every stream, so that a stream without events exists. The last entry of a stream that has ended has the largest id.

use std::{
    io,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use pintle::server::{
    http::log::{Appended, Event, EventId, EventLog, MissedEvents, Replay},
    store::Stored,
};
use redis::{ErrorKind, Pipeline, ServerErrorKind, Value};

use crate::{
    Redis,
    backend::failed,
    connection::{Connection, milliseconds},
};

/// The id of the entry that ends a stream.
const END: &str = "18446744073709551615-0";

/// Adds a stream, if there is none.
const OPEN: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XADD', KEYS[1], '0-1', 'o', '')
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 0";

/// Replaces the description of a stream with this newest entry. Returns 0, 1 if another entry is the newest, and 2 if the stream is unknown
/// or ended.
const DESCRIBE: &str = r"
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #top == 0 or top[1][1] == ARGV[1] then return 2 end
if top[1][1] ~= ARGV[2] then return 1 end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return 0";

/// The size of a description that says no more than which process runs which calls.
const SMALL_OPENING: usize = 256;

/// Ends a stream, after a last event if there is one. Returns 0, 1 if its position is taken, and 2 if the stream is unknown or ended.
const FINISH: &str = r"
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
if #top == 0 or top[1][1] == ARGV[1] then return 2 end
if #ARGV > 3 then
  local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', '~', ARGV[6], ARGV[4], 'd', ARGV[5])
  if type(added) == 'table' and added.err then return 1 end
end
redis.call('XADD', KEYS[1], ARGV[1], 'e', '')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HDEL', KEYS[2], ARGV[2])
return 0";

/// The window of time in which the bytes of a session are counted.
const WINDOW: Duration = Duration::from_secs(300);

fn too_much(limit: u64) -> io::Error {
    io::Error::other(format!("the events of a session take more than {limit} bytes in five minutes"))
}

impl Connection {
    async fn append(&self, session: &str, id: EventId, data: &[u8]) -> io::Result<Appended> {
        let key = self.keys.stream(session, id.stream);
        let value = self.encode(&key, data)?;
        let mut add = redis::cmd("XADD");
        add.arg(&key).arg("NOMKSTREAM").arg("MAXLEN").arg("~").arg(self.options.stream_events);
        add.arg(format!("{}-0", id.place)).arg("d").arg(value);
        match self.try_run::<Option<String>>(&add).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Appended::Gone),
            // The code is that of many errors: the newest entry tells whether the position is taken.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError) => {
                let mut top = redis::cmd("XREVRANGE");
                top.arg(&key).arg("+").arg("-").arg("COUNT").arg(1);
                let top = entries(self.run(&top).await?);
                return match top.first() {
                    Some((newest, _)) if newest == END => Ok(Appended::Gone),
                    Some((newest, _)) if place_of(newest).is_some_and(|newest| newest >= id.place) => {
                        Ok(Appended::Taken)
                    }
                    Some(_) => Err(failed(error)),
                    None => Ok(Appended::Gone),
                };
            }
            Err(error) => return Err(failed(error)),
        }
        let mut expire = redis::pipe();
        let life = milliseconds(self.options.open_stream);
        expire.cmd("PEXPIRE").arg(&key).arg(life).ignore();
        expire.cmd("PEXPIRE").arg(self.keys.openings(session)).arg(life).ignore();
        self.count(&mut expire, session, data.len());
        let (logged,): (u64,) = self.run_all(&expire).await?;
        if logged > self.options.session_bytes {
            return Err(too_much(self.options.session_bytes));
        }
        Ok(Appended::Done)
    }

    /// Counts the bytes that a session has logged. The command returns those of this window of time.
    fn count(&self, commands: &mut Pipeline, session: &str, bytes: usize) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let key = self.keys.logged_bytes(session, now.as_secs() / WINDOW.as_secs());
        commands.cmd("INCRBY").arg(&key).arg(bytes);
        // Clocks of processes differ.
        commands.cmd("PEXPIRE").arg(&key).arg(milliseconds(2 * WINDOW)).ignore();
    }

    async fn finish(
        &self,
        session: &str,
        stream: u64,
        last: Option<(EventId, Bytes)>,
    ) -> io::Result<Appended> {
        let key = self.keys.stream(session, stream);
        let mut commands = redis::pipe();
        self.count(&mut commands, session, last.as_ref().map_or(0, |(_, data)| data.len()));
        let finish = commands.cmd("EVAL");
        finish.arg(FINISH).arg(2).arg(&key).arg(self.keys.openings(session));
        finish.arg(END).arg(stream).arg(milliseconds(self.options.ended_stream));
        if let Some((id, data)) = last {
            finish
                .arg(format!("{}-0", id.place))
                .arg(self.encode(&key, &data)?)
                .arg(self.options.stream_events);
        }
        let (logged, outcome): (u64, i64) = self.run_all(&commands).await?;
        if logged > self.options.session_bytes {
            // It has ended, and is not kept.
            self.run::<i64>(redis::cmd("UNLINK").arg(&key)).await?;
        }
        Ok(match outcome {
            0 => Appended::Done,
            1 => Appended::Taken,
            _ => Appended::Gone,
        })
    }

    async fn describe(&self, session: &str, newest: EventId, opening: &[u8]) -> io::Result<Appended> {
        let key = self.keys.stream(session, newest.stream);
        let top = match newest.place {
            0 => "0-1".to_owned(),
            place => format!("{place}-0"),
        };
        let mut commands = redis::pipe();
        self.count(&mut commands, session, opening.len());
        let describe = commands.cmd("EVAL");
        describe.arg(DESCRIBE).arg(2).arg(&key).arg(self.keys.openings(session)).arg(END).arg(top);
        describe.arg(newest.stream).arg(self.encode(&key, opening)?);
        describe.arg(milliseconds(self.options.open_stream));
        let (logged, outcome): (u64, i64) = self.run_all(&commands).await?;
        if logged > self.options.session_bytes {
            return Err(too_much(self.options.session_bytes));
        }
        Ok(match outcome {
            0 => Appended::Done,
            1 => Appended::Taken,
            _ => Appended::Gone,
        })
    }

    async fn after(&self, session: &str, last: EventId) -> io::Result<Replay> {
        let key = self.keys.stream(session, last.stream);
        let mut commands = redis::pipe();
        commands.cmd("XRANGE").arg(&key).arg(format!("{}-0", last.place)).arg("+");
        commands.cmd("HGET").arg(self.keys.openings(session)).arg(last.stream);
        let (found, opening): (Value, Option<Vec<u8>>) = self.run_again(&commands).await?;
        let mut found = entries(found);
        let ended = found.pop_if(|(id, _)| id == END).is_some();
        // The position that has to come next: that of the last event itself, or the one after it if it was dropped.
        let (mut next, mut events) = (None, Vec::new());
        for (id, data) in found {
            let Some(place) = place_of(&id) else {
                // The first entry of the stream.
                next = Some(1);
                continue;
            };
            match next {
                None if place == last.place || Some(place) == last.place.checked_add(1) => {}
                Some(next) if next == place => {}
                _ => return Ok(Replay::Gone),
            }
            next = place.checked_add(1);
            if place > last.place {
                let id = EventId { place, ..last };
                events.push(Event::new(id, self.decode(&key, &data)?.into()));
            }
        }
        if next.is_none() {
            return Ok(Replay::Gone);
        }
        let opening = opening.map(|opening| self.decode(&key, &opening)).transpose()?.unwrap_or_default();
        Ok(Replay::Events(MissedEvents::new(events, ended, opening.into())))
    }
}

/// Returns the position of the event with this id. The first entry of a stream is none.
fn place_of(id: &str) -> Option<u64> {
    id.strip_suffix("-0")?.parse().ok()
}

/// Returns the ids of entries, and the value of the first field of each.
fn entries(value: Value) -> Vec<(String, Vec<u8>)> {
    let Value::Array(entries) = value else { return Vec::new() };
    entries.into_iter().filter_map(entry).collect()
}

/// Returns the id of an entry, and the value of its first field.
pub(crate) fn entry(value: Value) -> Option<(String, Vec<u8>)> {
    let (id, fields): (String, Vec<Vec<u8>>) = redis::from_redis_value(value).ok()?;
    Some((id, fields.into_iter().nth(1)?))
}

impl EventLog for Redis {
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.stream(session, stream);
            let mut commands = redis::pipe();
            if opening.len() > SMALL_OPENING {
                connection.count(&mut commands, session, opening.len());
            }
            let opening = connection.encode(&key, &opening)?;
            let open = commands.cmd("EVAL");
            open.arg(OPEN).arg(2).arg(&key).arg(connection.keys.openings(session));
            open.arg(stream).arg(opening).arg(milliseconds(connection.options.open_stream));
            connection.run_all::<redis::Value>(&commands).await.map(drop)
        })
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move { self.0.connection.append(session, id, &data).await })
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move { self.0.connection.finish(session, id.stream, Some((id, data))).await })
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move { self.0.connection.describe(session, newest, &opening).await })
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        Stored::later(async move { self.0.connection.after(session, last).await })
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        Stored::later(async move { self.0.connection.finish(session, stream, None).await.map(drop) })
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let mut commands = redis::pipe();
            commands.cmd("UNLINK").arg(connection.keys.stream(session, stream)).ignore();
            commands.cmd("HDEL").arg(connection.keys.openings(session)).arg(stream).ignore();
            connection.run_again(&commands).await
        })
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let openings = connection.keys.openings(session);
            // Streams that have ended are not in it, and expire soon.
            let streams: Vec<String> = connection.run(redis::cmd("HKEYS").arg(&openings)).await?;
            let mut unlink = redis::cmd("UNLINK");
            unlink.arg(&openings);
            for stream in streams {
                unlink.arg(connection.keys.stream(session, stream));
            }
            connection.run::<i64>(&unlink).await.map(drop)
        })
    }
}
