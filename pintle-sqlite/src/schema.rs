//! The tables of the file.

use std::{
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// The format of the tables, in `user_version`.
const FORMAT: u32 = 1;

/// How long a process waits for another one that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const TABLES: &str = "
    CREATE TABLE task (
        id TEXT PRIMARY KEY NOT NULL,
        owner TEXT NOT NULL,
        account TEXT NOT NULL,
        version INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        holder TEXT,
        unread INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX task_owner ON task (owner, id);
    CREATE INDEX task_expires ON task (expires);
    CREATE INDEX task_holder ON task (holder, unread) WHERE holder IS NOT NULL;
    -- The tasks and bytes of each account; those of all are in the row of the empty name.
    CREATE TABLE usage (account TEXT PRIMARY KEY NOT NULL, tasks INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO usage VALUES ('', 0, 0);
    CREATE TABLE lease (holder TEXT PRIMARY KEY NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
";

/// Opens the file, and creates it with its tables if there is none.
pub(crate) fn open(path: &Path) -> io::Result<Connection> {
    create_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
    prepare(&mut connection).map_err(|error| failed(&error))??;
    Ok(connection)
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<io::Result<()>> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    set_wal(connection)?;
    // Every commit is on the disk when it returns.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let format: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match format {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        FORMAT => {}
        other => {
            let message = format!(
                "the file of tasks has format {other}, and this version reads {FORMAT}: use another file"
            );
            return Ok(Err(io::Error::new(io::ErrorKind::InvalidData, message)));
        }
    }
    transaction.commit()?;
    Ok(Ok(()))
}

/// Has the file written ahead. Another process that opens it at the same time may have it locked, and SQLite does not wait for that.
fn set_wal(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        let mode =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < BUSY_TIMEOUT =>
            {
                thread::sleep(Duration::from_millis(10));
            }
            mode => return mode.map(drop),
        }
    }
}

/// Creates the file, for its owner alone. SQLite gives the files beside it the same mode.
#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let file =
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!(
            "the file of tasks `{}` has mode {mode:o}, so others can open it: set it to 600",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map(drop)
}

/// Returns an error of SQLite as one of I/O.
pub(crate) fn failed(error: &rusqlite::Error) -> io::Error {
    io::Error::other(format!("the file of tasks: {error}"))
}
