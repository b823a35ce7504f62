//! The tables of the file.

use std::{
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// How long a process waits for another one that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The statements that bring the tables from one format to the next, from an empty file on. `user_version` has the number of those that
/// were run.
///
/// A change is one more text at the end, which has to leave the tables usable by the statements of the version before: a column with
/// a default, an index, or a table. So a process that has the file open goes on while a newer one opens it. It is refused when
/// it opens the file again.
const FORMATS: &[&str] = &["
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
"];

/// Opens the file, and creates it with its tables if there is none.
pub(crate) fn open(path: &Path) -> io::Result<Connection> {
    // The directory may be reached by a link, the file may not.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize()?,
        _ => Path::new(".").canonicalize()?,
    };
    let path = folder.join(path.file_name().unwrap_or_default());
    create_private(&folder, &path)?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
    prepare(&mut connection, FORMATS).map_err(|error| failed(&error))??;
    Ok(connection)
}

fn prepare(connection: &mut Connection, formats: &[&str]) -> rusqlite::Result<io::Result<()>> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    set_wal(connection)?;
    // Every commit is on the disk when it returns.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let format: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(missing) = usize::try_from(format).ok().and_then(|format| formats.get(format..)) else {
        let message = format!(
            "the file of tasks has format {format}, and this version reads up to {}: update this program, or use another file",
            formats.len()
        );
        return Ok(Err(io::Error::new(io::ErrorKind::InvalidData, message)));
    };
    for change in missing {
        transaction.execute_batch(change)?;
    }
    if !missing.is_empty() {
        transaction.pragma_update(None, "user_version", u32::try_from(formats.len()).unwrap_or(u32::MAX))?;
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

/// Creates the file, for its owner alone. SQLite gives the files beside it the same mode, and takes a log that it finds there for its own: so
/// nobody else may create files in the folder.
#[cfg(unix)]
fn create_private(folder: &Path, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let refused = |message| Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    let shown = path.display();
    let mode = fs::metadata(folder)?.permissions().mode() & 0o7777;
    if mode & 0o002 != 0 {
        return refused(format!(
            "the file of tasks `{shown}` is in a directory of mode {mode:o}, so everybody can put files beside it: use another one"
        ));
    }
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created.map(drop),
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() {
        return refused(format!("the file of tasks `{shown}` is not a regular file: use its own path"));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return refused(format!(
            "the file of tasks `{shown}` has mode {mode:o}, so others can open it: set it to 600"
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn create_private(_: &Path, path: &Path) -> io::Result<()> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map(drop)
}

/// Returns an error of SQLite as one of I/O.
pub(crate) fn failed(error: &rusqlite::Error) -> io::Error {
    io::Error::other(format!("the file of tasks: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next format, as it may be one day.
    const NEXT: &str = "ALTER TABLE task ADD COLUMN tool TEXT NOT NULL DEFAULT \'\'";

    fn connect(path: &Path, formats: &[&str]) -> io::Result<Connection> {
        let mut connection = Connection::open(path).map_err(|error| failed(&error))?;
        prepare(&mut connection, formats).map_err(|error| failed(&error))??;
        Ok(connection)
    }

    fn insert(connection: &Connection, id: &str) -> usize {
        let text = "INSERT INTO task (id, owner, account, version, expires, holder, unread, bytes, body)
             VALUES (?1, \'o\', \'o\', 0, 1, NULL, 0, 1, x\'00\')";
        connection.execute(text, [id]).unwrap()
    }

    #[test]
    fn a_file_of_the_format_before_is_brought_to_the_next_while_a_process_of_the_version_before_uses_it() {
        let path = std::env::temp_dir().join(format!("pintle-sqlite-format-{}", std::process::id()));
        let next: Vec<&str> = FORMATS.iter().copied().chain([NEXT]).collect();
        let before = connect(&path, FORMATS).unwrap();
        insert(&before, "old");

        let after = connect(&path, &next).unwrap();
        insert(&before, "of the old process");
        after.execute("UPDATE task SET tool = \'echo\' WHERE id = \'old\'", []).unwrap();
        let tools: Vec<String> = after
            .prepare("SELECT tool FROM task ORDER BY id DESC")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(tools, ["echo", ""]);
        let owners: u32 = before.query_row("SELECT count(owner) FROM task", [], |row| row.get(0)).unwrap();
        assert_eq!(owners, 2);

        // The version before does not open it again.
        let refused = connect(&path, FORMATS).unwrap_err().to_string();
        let expected = format!(
            "the file of tasks has format {}, and this version reads up to {}",
            next.len(),
            FORMATS.len()
        );
        assert!(refused.starts_with(&expected) && refused.ends_with("use another file"), "{refused}");
        connect(&path, &next).unwrap();
        drop((before, after));
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", path.display()));
        }
    }
}
