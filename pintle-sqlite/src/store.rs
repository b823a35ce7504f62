use std::{
    fmt, io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_tasks::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};
use rusqlite::{
    Connection, OptionalExtension as _, Row, ToSql, Transaction, TransactionBehavior, params, types::Value,
};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::schema;

/// A store of tasks in an SQLite file.
///
/// Every change is on the disk before its request is answered. Cheap to clone: clones use one connection, one after the other, on a
/// thread for blocking work. Other processes may use the same file, on a local file system.
///
/// ```
/// use pintle_tasks::TaskStore;
/// use pintle_sqlite::SqliteTaskStore;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("pintle-sqlite-store-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let store = SqliteTaskStore::open(folder.join("tasks.db"))?;
/// assert!(store.get("unknown").await?.is_none());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SqliteTaskStore {
    connection: Arc<Mutex<Connection>>,
    /// Those that wait for the connection wait here, and not on a thread each.
    turn: Arc<Semaphore>,
}

impl SqliteTaskStore {
    /// Opens a file, and creates it with mode 0600 if there is none. This blocks: call it when the server is built.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened, is a symbolic link or not one of tasks, or if other users can open it or everybody
    /// can create files beside it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let connection = schema::open(path.as_ref())?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), turn: Arc::new(Semaphore::new(1)) })
    }

    /// Runs a transaction on a thread for blocking work.
    fn run<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> TaskFuture<'a, T> {
        let (connection, turn) = (self.connection.clone(), self.turn.clone());
        Box::pin(async move {
            let permit = turn.acquire_owned().await.map_err(io::Error::other)?;
            let done = spawn_blocking(move || {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = work(&transaction)?;
                transaction.commit()?;
                drop((connection, permit));
                Ok::<_, rusqlite::Error>(done)
            });
            done.await.map_err(io::Error::other)?.map_err(|error| schema::failed(&error))
        })
    }

    /// Runs a query on a thread for blocking work. It does not wait for other processes that write.
    fn read<'a, T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> TaskFuture<'a, T> {
        let (connection, turn) = (self.connection.clone(), self.turn.clone());
        Box::pin(async move {
            let permit = turn.acquire_owned().await.map_err(io::Error::other)?;
            let done = spawn_blocking(move || {
                let found = query(&connection.lock().unwrap_or_else(PoisonError::into_inner));
                drop(permit);
                found
            });
            done.await.map_err(io::Error::other)?.map_err(|error| schema::failed(&error))
        })
    }
}

/// The columns of a task, as [`stored`] reads them.
const COLUMNS: &str = "id, owner, account, version, expires, holder, unread, body";

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredTask> {
    let mut task = StoredTask::new(
        row.get::<_, String>(0)?,
        row.get::<_, String>(1)?,
        row.get::<_, i64>(4)?.cast_unsigned(),
        row.get(7)?,
    );
    (task.account, task.version) = (row.get(2)?, row.get::<_, i64>(3)?.cast_unsigned());
    (task.holder, task.unread) = (row.get(5)?, row.get(6)?);
    Ok(task)
}

/// Returns what is in a row, or nothing for one that was written by something else: it hides no other, until it expires.
fn readable<T>(row: rusqlite::Result<T>) -> Option<rusqlite::Result<T>> {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    match row {
        Err(
            error @ (FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..)),
        ) => {
            tracing::warn!(%error, "a row of the file of tasks cannot be read; skipping it");
            None
        }
        row => Some(row),
    }
}

/// Returns a number as SQLite has them.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn size(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns whether an account, and all of them together, have room for more.
fn has_room(
    transaction: &Transaction<'_>,
    account: &str,
    (tasks, bytes): (i64, i64),
    quota: &TaskQuota,
) -> rusqlite::Result<bool> {
    let usage = |name: &str| {
        let mut query = transaction.prepare_cached("SELECT tasks, bytes FROM usage WHERE account = ?1")?;
        let found = query.query_row([name], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        found.optional().map(Option::unwrap_or_default)
    };
    let fits = |(used_tasks, used_bytes): (i64, i64), max_tasks: usize, max_bytes: usize| {
        used_tasks.saturating_add(tasks) <= size(max_tasks)
            && used_bytes.saturating_add(bytes) <= size(max_bytes)
    };
    Ok(fits(usage(account)?, quota.account_tasks, quota.account_bytes)
        && fits(usage("")?, quota.tasks, quota.bytes))
}

/// Adds to what an account, and all of them together, use.
fn charge(
    transaction: &Transaction<'_>,
    account: &dyn ToSql,
    tasks: i64,
    bytes: i64,
) -> rusqlite::Result<()> {
    let mut add = transaction.prepare_cached(
        "INSERT INTO usage (account, tasks, bytes) VALUES (?1, ?2, ?3)
         ON CONFLICT (account) DO UPDATE SET tasks = tasks + excluded.tasks, bytes = bytes + excluded.bytes",
    )?;
    for name in [account, &""] {
        add.execute(params![name, tasks, bytes])?;
    }
    let mut clear = transaction
        .prepare_cached("DELETE FROM usage WHERE account = ?1 AND account <> '' AND tasks <= 0")?;
    clear.execute([account]).map(drop)
}

fn create(transaction: &Transaction<'_>, task: &StoredTask, quota: &TaskQuota) -> rusqlite::Result<bool> {
    let bytes = size(task.bytes());
    if task.bytes() > quota.task_bytes || !has_room(transaction, &task.account, (1, bytes), quota)? {
        return Ok(false);
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO task (id, owner, account, version, expires, holder, unread, bytes, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
    )?;
    let inserted = insert.execute(params![
        task.id,
        task.owner,
        task.account,
        number(task.version),
        number(task.expires),
        task.holder,
        task.unread,
        bytes,
        task.body,
    ])?;
    if inserted == 0 {
        return Ok(false);
    }
    charge(transaction, &task.account, 1, bytes)?;
    Ok(true)
}

fn update(transaction: &Transaction<'_>, task: &StoredTask, quota: &TaskQuota) -> rusqlite::Result<Updated> {
    let mut query = transaction.prepare_cached("SELECT version, bytes, account FROM task WHERE id = ?1")?;
    let found = query
        .query_row([&task.id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
        })
        .optional()?;
    let Some((version, before, account)) = found else { return Ok(Updated::Outdated) };
    if version.checked_add(1) != Some(number(task.version)) {
        return Ok(Updated::Outdated);
    }
    let more = size(task.bytes()).saturating_sub(before);
    if more > 0 && (task.bytes() > quota.task_bytes || !has_room(transaction, &account, (0, more), quota)?) {
        return Ok(Updated::Full);
    }
    let mut change = transaction.prepare_cached(
        "UPDATE task SET version = ?2, expires = ?3, holder = ?4, unread = ?5, bytes = ?6, body = ?7 WHERE id = ?1",
    )?;
    change.execute(params![
        task.id,
        number(task.version),
        number(task.expires),
        task.holder,
        task.unread,
        size(task.bytes()),
        task.body,
    ])?;
    charge(transaction, &account, 0, more)?;
    Ok(Updated::Stored)
}

fn remove_expired(transaction: &Transaction<'_>, now: u64) -> rusqlite::Result<Option<u64>> {
    let now = number(now);
    let mut query = transaction.prepare_cached(
        "SELECT account, COUNT(*), CAST(SUM(bytes) AS INTEGER) FROM task WHERE expires <= ?1 GROUP BY account",
    )?;
    // Whatever is in a row, it expires.
    let freed: Vec<(Value, i64, i64)> = query
        .query_map([now], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if !freed.is_empty() {
        transaction.prepare_cached("DELETE FROM task WHERE expires <= ?1")?.execute([now])?;
        for (account, tasks, bytes) in freed {
            charge(transaction, &account, -tasks, -bytes)?;
        }
    }
    let next: Option<i64> =
        transaction.prepare_cached("SELECT MIN(expires) FROM task")?.query_row([], |row| row.get(0))?;
    Ok(next.map(i64::cast_unsigned))
}

impl TaskStore for SqliteTaskStore {
    fn create<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, bool> {
        let (task, quota) = (task.clone(), *quota);
        self.run(move |transaction| create(transaction, &task, &quota))
    }

    fn update<'a>(&'a self, task: &'a StoredTask, quota: &'a TaskQuota) -> TaskFuture<'a, Updated> {
        let (task, quota) = (task.clone(), *quota);
        self.run(move |transaction| update(transaction, &task, &quota))
    }

    fn get<'a>(&'a self, id: &'a str) -> TaskFuture<'a, Option<StoredTask>> {
        let id = id.to_owned();
        self.read(move |connection| {
            let mut query =
                connection.prepare_cached(&format!("SELECT {COLUMNS} FROM task WHERE id = ?1"))?;
            query.query_row([id], stored).optional()
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> TaskFuture<'a, Vec<StoredTask>> {
        let (owner, after) = (owner.to_owned(), after.unwrap_or_default().to_owned());
        self.read(move |connection| {
            let mut query = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM task WHERE owner = ?1 AND id > ?2 ORDER BY id"
            ))?;
            query.query_map(params![owner, after], stored)?.filter_map(readable).take(limit).collect()
        })
    }

    fn remove_expired(&self, now: u64) -> TaskFuture<'_, Option<u64>> {
        self.run(move |transaction| remove_expired(transaction, now))
    }

    fn renew<'a>(&'a self, holder: &'a str, until: u64) -> TaskFuture<'a, ()> {
        let holder = holder.to_owned();
        self.run(move |transaction| {
            let mut renew = transaction.prepare_cached(
                "INSERT INTO lease (holder, until) VALUES (?1, ?2) ON CONFLICT (holder) DO UPDATE SET until = excluded.until",
            )?;
            renew.execute(params![holder, number(until)])?;
            // Those of processes that have ended, once they have no tasks any more.
            let mut clear = transaction.prepare_cached(
                "DELETE FROM lease WHERE until < ?1 - 86400000
                 AND NOT EXISTS (SELECT 1 FROM task WHERE task.holder = lease.holder)",
            )?;
            clear.execute([number(until)]).map(drop)
        })
    }

    fn orphans(&self, now: u64, limit: usize) -> TaskFuture<'_, Vec<StoredTask>> {
        self.read(move |connection| {
            let mut query = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM task WHERE rowid IN (SELECT rowid FROM task WHERE holder IS NOT NULL
                 AND holder NOT IN (SELECT holder FROM lease WHERE until > ?1) ORDER BY RANDOM() LIMIT ?2)"
            ))?;
            // In any order: those that no process here can open, such as ones of another key, hide no others.
            query.query_map(params![number(now), size(limit)], stored)?.filter_map(readable).collect()
        })
    }

    fn unread<'a>(&'a self, holder: &'a str, limit: usize) -> TaskFuture<'a, Vec<String>> {
        let holder = holder.to_owned();
        self.read(move |connection| {
            let mut query =
                connection.prepare_cached("SELECT id FROM task WHERE holder = ?1 AND unread LIMIT ?2")?;
            query.query_map(params![holder, size(limit)], |row| row.get(0))?.filter_map(readable).collect()
        })
    }
}

impl fmt::Debug for SqliteTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTaskStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_disk_is_an_error_and_what_was_there_is_still_there() {
        let folder = std::env::temp_dir().join(format!("pintle-sqlite-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = SqliteTaskStore::open(folder.join("tasks.db")).unwrap();
        let (mut quota, late) = (TaskQuota::default(), 4_000_000_000_000);
        let first = StoredTask::new("a", "ann", late, vec![1; 1_000]);
        assert!(store.create(&first, &quota).await.unwrap());
        store.connection.lock().unwrap().pragma_update(None, "max_page_count", 1).unwrap();
        let second = StoredTask::new("b", "ann", late, vec![1; 100_000]);
        let error = store.create(&second, &quota).await.unwrap_err().to_string();
        assert_eq!(error, "the file of tasks: database or disk is full");
        assert_eq!(store.list("ann", None, 10).await.unwrap(), [first]);
        // Nothing of it was counted.
        store.connection.lock().unwrap().pragma_update(None, "max_page_count", 1_000_000).unwrap();
        quota.account_tasks = 2;
        assert!(store.create(&second, &quota).await.unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
