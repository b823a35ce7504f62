//! A store of sessions, call states, nonces and rates on SQLite: what it takes to write one for another database.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use pintle::server::store::{Expected, GetOptions, Got, Key, Life, Put, Store, Stored};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use tokio::task::spawn_blocking;

const SCHEMA: &str = "
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS stored (
  space TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL, ends INTEGER NOT NULL,
  PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stored_ends ON stored (ends);";

/// The number of expired values that each change removes at most.
const EXPIRE: i64 = 64;

/// A store in an SQLite file, which several processes may open.
#[derive(Clone, Debug)]
pub(crate) struct SqliteStore(Arc<Mutex<Connection>>);

/// What is changed in a transaction: a key, without its borrow.
struct Row {
    space: &'static str,
    id: String,
}

impl Row {
    fn of(key: Key<'_>) -> Self {
        Self { space: key.space.as_str(), id: key.id.to_owned() }
    }

    /// Returns the version and the value that are there at this time.
    fn find(&self, file: &Transaction<'_>, now: i64) -> rusqlite::Result<Option<(u64, Vec<u8>)>> {
        let mut find =
            file.prepare_cached("SELECT version, value FROM stored WHERE space = ? AND id = ? AND ends > ?")?;
        let found = find.query_row(params![self.space, self.id, now], |row| {
            Ok((u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(), row.get(1)?))
        });
        found.optional()
    }

    fn write(&self, file: &Transaction<'_>, version: u64, value: &[u8], ends: i64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO stored (space, id, version, value, ends) VALUES (?, ?, ?, ?, ?)";
        let version = i64::try_from(version).unwrap_or(i64::MAX);
        file.prepare_cached(sql)?.execute(params![self.space, self.id, version, value, ends]).map(drop)
    }
}

impl SqliteStore {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let connection = Connection::open(path).map_err(io::Error::other)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(io::Error::other)?;
        connection.execute_batch(SCHEMA).map_err(io::Error::other)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs a transaction at a time of this machine's clock, on a thread for blocking work.
    fn run<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Stored<'a, T> {
        let connection = self.0.clone();
        Stored::later(async move {
            let done = spawn_blocking(move || {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let file = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = work(&file, clock())?;
                file.commit()?;
                Ok::<_, rusqlite::Error>(done)
            });
            done.await.map_err(io::Error::other)?.map_err(io::Error::other)
        })
    }
}

/// Returns the time in milliseconds of the Unix epoch.
fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the end of a life that begins now.
fn end(life: Life, now: i64) -> i64 {
    match life {
        Life::Idle(idle) => now.saturating_add(i64::try_from(idle.as_millis()).unwrap_or(i64::MAX)),
        Life::Until(until) => i64::try_from(until).unwrap_or(i64::MAX),
    }
}

impl Store for SqliteStore {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        let row = Row::of(key);
        self.run(move |file, now| {
            let Some((version, value)) = row.find(file, now)? else { return Ok(Got::None) };
            if let Some(idle) = how.prolong {
                let sql = "UPDATE stored SET ends = ? WHERE space = ? AND id = ?";
                file.prepare_cached(sql)?.execute(params![end(Life::Idle(idle), now), row.space, row.id])?;
            }
            Ok(if how.unless == Some(version) { Got::Same } else { Got::Value { version, value } })
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        let (row, value) = (Row::of(key), value.to_vec());
        self.run(move |file, now| {
            let sql = "DELETE FROM stored WHERE (space, id) IN (SELECT space, id FROM stored WHERE ends <= ? LIMIT ?)";
            file.prepare_cached(sql)?.execute(params![now, EXPIRE])?;
            let version = match (at, row.find(file, now)?) {
                (Expected::Absent, None) => 1,
                (Expected::Version(version), Some((found, _))) if found == version => version.saturating_add(1),
                (_, Some(_)) => return Ok(Put::Other),
                (Expected::Version(_), None) => return Ok(Put::Gone),
            };
            let ends = end(life, now);
            if ends <= now {
                return Ok(Put::Forgotten);
            }
            row.write(file, version, &value, ends)?;
            Ok(Put::Done(version))
        })
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        let row = Row::of(key);
        self.run(move |file, now| {
            let is_there = row.find(file, now)?.is_some();
            let sql = "DELETE FROM stored WHERE space = ? AND id = ?";
            file.prepare_cached(sql)?.execute(params![row.space, row.id])?;
            Ok(is_there)
        })
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        let row = Row::of(key);
        let counted = self.run(move |file, now| {
            let found: Option<(i64, i64)> = file
                .prepare_cached("SELECT version, ends FROM stored WHERE space = ? AND id = ? AND ends > ?")?
                .query_row(params![row.space, row.id, now], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let (count, ends) = found.unwrap_or((0, end(life, now)));
            if ends <= now {
                return Ok(None);
            }
            let count = count.saturating_add(add);
            let sql =
                "INSERT OR REPLACE INTO stored (space, id, version, value, ends) VALUES (?, ?, ?, x'', ?)";
            file.prepare_cached(sql)?.execute(params![row.space, row.id, count, ends])?;
            Ok(Some(count))
        });
        Stored::later(async move {
            counted.await?.ok_or_else(|| io::Error::other("what was counted may be forgotten"))
        })
    }

    fn now(&self) -> Stored<'_, u64> {
        Stored::now(u64::try_from(clock()).unwrap_or_default())
    }
}
