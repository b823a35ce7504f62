//! The store of sessions, states, nonces and rates: a string for each value, which is its version, a line feed and the sealed value.

use std::{io, time::Duration};

use pintle::server::store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store, Stored};

use crate::{
    Redis,
    connection::{Connection, milliseconds},
};

/// Puts a value, for the version `ARGV[1]`, which is 0 if there has to be none. Returns 0, 1 if there is another version, 2 if there is
/// none, and 3 if the life of the value is over.
///
/// A value of an earlier release, of whatever type, is another version.
const PUT: &str = r"
if ARGV[1] == '0' then
  if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
else
  local found = redis.call('GET', KEYS[1])
  if not found then return 2 end
  if string.match(found, '^%d+') ~= ARGV[1] then return 1 end
end
redis.call('SET', KEYS[1], ARGV[2], ARGV[3], ARGV[4])
if redis.call('EXISTS', KEYS[1]) == 0 then return 3 end
return 0";

/// Adds to a counter, which gets a life if it is new. Returns nothing if that is over.
const COUNT: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SET', KEYS[1], 0, ARGV[2], ARGV[3]) end
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
return redis.call('INCRBY', KEYS[1], ARGV[1])";

/// The milliseconds of the Unix epoch that end the year 9999: Redis refuses an expiry that overflows.
const LAST_TIME: u64 = 253_402_300_799_999;

/// Returns the option of a life and its number. A time that has passed is one that Redis takes for an expiry.
fn expiry(life: Life) -> (&'static str, u64) {
    match life {
        Life::Idle(idle) => ("PX", milliseconds(idle)),
        Life::Until(until) => ("PXAT", until.clamp(1, LAST_TIME)),
    }
}

impl Connection {
    fn store_key(&self, key: Key<'_>) -> io::Result<String> {
        Ok(match key.space {
            Space::Session => self.keys.session(key.id),
            Space::State => self.keys.value("u", key.id),
            Space::Nonce => self.keys.value("n", key.id),
            Space::Rate => self.keys.value("q", key.id),
            Space::Seen => self.keys.value("e", key.id),
            Space::Lease => self.keys.value("p", key.id),
            other => {
                return Err(io::Error::other(format!(
                    "values of the space `{}` are not stored",
                    other.as_str()
                )));
            }
        })
    }
}

/// Returns the version of a value, and what follows it.
fn split_version(value: &[u8]) -> io::Result<(u64, &[u8])> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a value in Redis is malformed");
    let line = value.iter().position(|byte| *byte == b'\n').ok_or_else(malformed)?;
    let (version, value) = value.split_at_checked(line).ok_or_else(malformed)?;
    let version = std::str::from_utf8(version).ok().and_then(|text| text.parse().ok());
    Ok((version.ok_or_else(malformed)?, value.get(1..).unwrap_or_default()))
}

impl Store for Redis {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let name = connection.store_key(key)?;
            let mut commands = redis::pipe();
            match how.prolong {
                Some(idle) => commands.cmd("GETEX").arg(&name).arg("PX").arg(milliseconds(idle)),
                None => commands.cmd("GET").arg(&name),
            };
            let (found,): (Option<Vec<u8>>,) = connection.run_again(&commands).await?;
            let Some(found) = found else { return Ok(Got::None) };
            let (version, value) = split_version(&found)?;
            // It is not opened: what the caller knows is used, and nothing of the value.
            if how.unless == Some(version) {
                return Ok(Got::Same);
            }
            Ok(Got::Value { version, value: connection.decode(&name, value)? })
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let name = connection.store_key(key)?;
            let before = match at {
                Expected::Absent => 0,
                Expected::Version(0) => u64::MAX,
                Expected::Version(version) => version,
            };
            let version = if at == Expected::Absent { 1 } else { before.saturating_add(1) };
            let mut text = format!("{version}\n").into_bytes();
            text.extend(connection.encode(&name, value)?);
            let mut put = redis::cmd("EVAL");
            let (option, expiry) = expiry(life);
            put.arg(PUT).arg(1).arg(&name).arg(before).arg(text).arg(option).arg(expiry);
            Ok(match connection.run(&put).await? {
                0 => Put::Done(version),
                1 => Put::Other,
                2 => Put::Gone,
                _ => Put::Forgotten,
            })
        })
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        Stored::later(async move {
            let connection = &self.0.connection;
            connection.run(redis::cmd("DEL").arg(connection.store_key(key)?)).await
        })
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let (option, expiry) = expiry(life);
            let mut count = redis::cmd("EVAL");
            count.arg(COUNT).arg(1).arg(connection.store_key(key)?).arg(add).arg(option).arg(expiry);
            let counted: Option<i64> = connection.run(&count).await?;
            counted.ok_or_else(|| io::Error::other("what was counted may be forgotten"))
        })
    }

    fn now(&self) -> Stored<'_, u64> {
        Stored::later(async move {
            // In a cluster, always that of one node.
            let (connection, mut time) = (&self.0.connection, redis::cmd("EVAL"));
            time.arg("return redis.call('TIME')").arg(1).arg(connection.keys.epoch());
            let (seconds, micros): (u64, u64) = connection.run(&time).await?;
            Ok(seconds * 1000 + micros / 1000)
        })
    }

    fn lease(&self) -> Option<Duration> {
        Some(self.0.connection.options.lease)
    }
}
