//! Sessions: a string with the version and the record.

use std::{io, time::Duration};

use pintle::server::{
    http::store::{Renewed, Replaced, Sessions, StoredSession, VersionedSession},
    store::Stored,
};

use crate::{
    Redis,
    connection::{Connection, milliseconds},
};

/// Replaces a session that has a version. Returns 0, 1 if it has another version, and 2 if there is none.
const REPLACE: &str = r"
local found = redis.call('GET', KEYS[1])
if not found then return 2 end
if string.match(found, '^%d+') ~= ARGV[1] then return 1 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 0";

impl Connection {
    fn session_value(&self, key: &str, version: u64, session: &StoredSession) -> io::Result<Vec<u8>> {
        let mut value = format!("{version}\n").into_bytes();
        value.extend(self.encode(key, &serde_json::to_vec(session)?)?);
        Ok(value)
    }

    fn parse_session(&self, key: &str, value: &[u8]) -> io::Result<VersionedSession> {
        let (version, record) = split_version(value)?;
        let record = self.decode(key, record)?;
        Ok(VersionedSession::new(version, serde_json::from_slice(&record)?))
    }

    /// Returns the value of a session, whose expiry is then `idle` from now.
    async fn read_session(&self, key: &str, idle: Duration) -> io::Result<Option<Vec<u8>>> {
        let mut commands = redis::pipe();
        commands.cmd("GETEX").arg(key).arg("PX").arg(milliseconds(idle));
        let (found,): (Option<Vec<u8>>,) = self.run_again(&commands).await?;
        Ok(found)
    }
}

/// Returns the version of a session, and the record behind it.
fn split_version(value: &[u8]) -> io::Result<(u64, &[u8])> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a session in Redis is malformed");
    let line = value.iter().position(|byte| *byte == b'\n').ok_or_else(malformed)?;
    let (version, record) = value.split_at_checked(line).ok_or_else(malformed)?;
    let version = std::str::from_utf8(version).ok().and_then(|text| text.parse().ok());
    Ok((version.ok_or_else(malformed)?, record.get(1..).unwrap_or_default()))
}

impl Sessions for Redis {
    fn create<'a>(&'a self, id: &'a str, session: StoredSession, idle: Duration) -> Stored<'a, bool> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.session(id);
            let value = connection.session_value(&key, 1, &session)?;
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(value).arg("NX").arg("PX").arg(milliseconds(idle));
            let done: Option<String> = connection.run(&set).await?;
            Ok(done.is_some())
        })
    }

    fn get<'a>(&'a self, id: &'a str, idle: Duration) -> Stored<'a, Option<VersionedSession>> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.session(id);
            let found = connection.read_session(&key, idle).await?;
            found.map(|value| connection.parse_session(&key, &value)).transpose()
        })
    }

    fn renew<'a>(&'a self, id: &'a str, version: u64, idle: Duration) -> Stored<'a, Renewed> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.session(id);
            Ok(match connection.read_session(&key, idle).await? {
                None => Renewed::Gone,
                // It is not opened: what this process knows is used, and nothing of the value.
                Some(value) if split_version(&value)?.0 == version => Renewed::Unchanged,
                Some(value) => Renewed::Changed(connection.parse_session(&key, &value)?.into()),
            })
        })
    }

    fn replace<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        session: StoredSession,
        idle: Duration,
    ) -> Stored<'a, Replaced> {
        Stored::later(async move {
            let connection = &self.0.connection;
            let key = connection.keys.session(id);
            let value = connection.session_value(&key, version.saturating_add(1), &session)?;
            let mut replace = redis::cmd("EVAL");
            replace.arg(REPLACE).arg(1).arg(&key).arg(version).arg(value).arg(milliseconds(idle));
            Ok(match connection.run(&replace).await? {
                0 => Replaced::Done,
                1 => Replaced::Conflict,
                _ => Replaced::Gone,
            })
        })
    }

    fn contains<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        Stored::later(async move {
            let connection = &self.0.connection;
            connection.run(redis::cmd("EXISTS").arg(connection.keys.session(id))).await
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Stored<'a, bool> {
        Stored::later(async move {
            let connection = &self.0.connection;
            connection.run(redis::cmd("DEL").arg(connection.keys.session(id))).await
        })
    }
}
