use std::{
    collections::VecDeque,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::oneshot;

use super::MessageRecord;

/// A file of records, one line of JSON each, for [`MessageLog::to_file`](super::MessageLog::to_file).
///
/// A thread writes the file. Records wait for it in a queue of at most 8 MiB, or one record that is larger. A record that finds the queue full, or that cannot
/// be written, is dropped: logging never delays or ends a connection. [`dropped`](Self::dropped) counts them, a `tracing`
/// warning reports the first of a series, and the next line of the file is `{"dropped":…}` with their number.
///
/// Cheap to clone. The thread ends when all clones are dropped, after it has written what is queued; before the process
/// exits, call [`flush`](Self::flush).
///
/// ```
/// use pintle::message_log::{MessageFile, MessageLog};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let path = std::env::temp_dir().join(format!("pintle-messages-{}.jsonl", std::process::id()));
/// let file = MessageFile::open(&path)?;
/// let log = MessageLog::to_file(&file);
/// // ... serve or connect with `log` ...
/// file.flush().await;
/// assert_eq!(file.dropped(), 0);
/// # std::fs::remove_file(path)
/// # }
/// ```
#[derive(Clone)]
pub struct MessageFile(Arc<Handle>);

/// Ends the thread when the last clone is dropped.
struct Handle(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    queued: Condvar,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    /// The number of records that were dropped.
    dropped: u64,
    /// How many of them the file does not report yet.
    unreported: u64,
    closed: bool,
}

enum Item {
    Line(String),
    /// Sent to once everything before is written.
    Flush(oneshot::Sender<()>),
}

/// The limit of queued bytes.
const MAX_QUEUED: usize = 8 << 20;

impl MessageFile {
    /// Opens a file to append to, or creates it for the current user alone (mode 0600).
    ///
    /// # Errors
    ///
    /// The file cannot be opened; it is not a regular file or is a symbolic link; or others may read or write it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = open(path.as_ref())?;
        Self::to_writer(file)
    }

    /// Writes to anything else, such as standard error or a socket. Each record is one call of `write_all`; the writer may
    /// block.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn to_writer(file: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), queued: Condvar::new() });
        let writing = shared.clone();
        thread::Builder::new().name("pintle-message-log".to_owned()).spawn(move || writing.run(file))?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Queues a record, or drops it.
    pub(super) fn write(&self, record: &MessageRecord<'_>) {
        let mut line = record.to_json();
        line.push('\n');
        let mut queue = self.0.0.lock();
        if queue.bytes > 0 && queue.bytes + line.len() > MAX_QUEUED {
            queue.drop_record("the disk is too slow");
            return;
        }
        queue.bytes += line.len();
        queue.items.push_back(Item::Line(line));
        drop(queue);
        self.0.0.queued.notify_one();
    }

    /// Waits until the records so far are written, or dropped.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.0.0.lock().items.push_back(Item::Flush(done));
        self.0.0.queued.notify_one();
        // The thread has ended if there is no answer.
        let _ = written.await;
    }

    /// Returns the number of records that were dropped.
    pub fn dropped(&self) -> u64 {
        self.0.0.lock().dropped
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued items until the file is closed.
    fn run(&self, mut file: impl Write) {
        let mut partial = false;
        loop {
            let mut queue = self.lock();
            while queue.items.is_empty() && !queue.closed {
                queue = self.queued.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(item) = queue.items.pop_front() else { return };
            let unreported = queue.unreported;
            drop(queue);
            let line = match item {
                Item::Line(line) => line,
                Item::Flush(done) => {
                    let _ = file.flush();
                    let _ = done.send(());
                    continue;
                }
            };
            let mut text = String::new();
            if partial {
                text.push('\n');
            }
            if unreported > 0 {
                text.push_str(&format!("{{\"dropped\":{unreported}}}\n"));
            }
            text.push_str(&line);
            let written = file.write_all(text.as_bytes());
            partial = written.is_err();
            let mut queue = self.lock();
            queue.bytes -= line.len();
            match written {
                Ok(()) => queue.unreported -= unreported,
                Err(error) => queue.drop_record(&error.to_string()),
            }
        }
    }
}

impl Queue {
    fn drop_record(&mut self, reason: &str) {
        if self.unreported == 0 {
            tracing::warn!(reason, dropped = self.dropped + 1, "records of a message log are dropped");
        }
        self.dropped += 1;
        self.unreported += 1;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.queued.notify_one();
    }
}

impl fmt::Debug for MessageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageFile").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// Opens or creates the file. Never follows a symbolic link: another user may have left one in a shared directory.
fn open(path: &Path) -> io::Result<File> {
    let mut create = OpenOptions::new();
    create.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
    match create.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    let refused = |why: &str| {
        let message = format!("`{}` {why}: choose another path, or remove it", path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, message)
    };
    // Looked at before it is opened, because opening a pipe waits for its reader.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(refused("is not a regular file"));
    }
    let file = OpenOptions::new().append(true).open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let (opened, named) = (file.metadata()?, fs::symlink_metadata(path)?);
        if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) || !opened.is_file() {
            return Err(refused("is not a regular file"));
        }
        if opened.mode() & 0o077 != 0 {
            let mode = opened.mode() & 0o777;
            return Err(refused(&format!("is open to other users (mode {mode:o}, not 600)")));
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::SystemTime};

    use super::*;
    use crate::message_log::{Direction, Payload, Side, transport_kind::TransportKind};

    fn record(number: u64, text: &str) -> MessageRecord<'_> {
        MessageRecord {
            number,
            time: SystemTime::UNIX_EPOCH,
            side: Side::Client,
            direction: Direction::Out,
            transport: TransportKind::Memory,
            connection: None,
            peer: None,
            session: None,
            http: None,
            payload: Payload::Text(text),
        }
    }

    /// A disk that fails or waits as it is told, and keeps what it takes.
    struct Disk {
        orders: mpsc::Receiver<io::Result<()>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !bytes.is_empty() {
                self.orders.recv().unwrap_or(Ok(()))?;
            }
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(written: &[u8]) -> Vec<serde_json::Value> {
        let lines = std::str::from_utf8(written).unwrap().lines().filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn numbers(written: &[u8]) -> Vec<serde_json::Value> {
        lines(written).iter_mut().map(|line| line["number"].take()).collect()
    }

    #[tokio::test]
    async fn a_slow_disk_drops_records_and_delays_nobody() {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (order, orders) = mpsc::channel();
        let file = MessageFile::to_writer(Disk { orders, written: written.clone() }).unwrap();
        let long = "x".repeat(MAX_QUEUED / 4);
        // The disk takes nothing yet: this returns all the same.
        (1..=10).for_each(|number| file.write(&record(number, &long)));
        assert_eq!(file.dropped(), 7);
        drop(order);
        file.flush().await;
        file.write(&record(11, "a"));
        file.flush().await;
        let lines = lines(&written.lock().unwrap());
        let numbers: Vec<_> = lines.iter().filter_map(|line| line["number"].as_u64()).collect();
        assert_eq!(numbers, [1, 2, 3, 11]);
        assert_eq!(lines.iter().filter_map(|line| line["dropped"].as_u64()).sum::<u64>(), 7);
    }

    #[tokio::test]
    async fn a_full_disk_drops_records_until_it_has_room() {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (order, orders) = mpsc::channel();
        let file = MessageFile::to_writer(Disk { orders, written: written.clone() }).unwrap();
        order.send(Ok(())).unwrap();
        for _ in 0..2 {
            order.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        }
        drop(order);
        (1..=4).for_each(|number| file.write(&record(number, "a")));
        file.flush().await;
        assert_eq!(file.dropped(), 2);
        assert_eq!(numbers(&written.lock().unwrap()), [1.into(), serde_json::Value::Null, 4.into()]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;

        let directory = std::env::temp_dir().join(format!("pintle-message-file-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("new");
        let file = MessageFile::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        file.write(&record(1, "a"));
        file.flush().await;
        // Appended to, not truncated.
        let again = MessageFile::open(&path).unwrap();
        again.write(&record(2, "b"));
        again.flush().await;
        assert_eq!(numbers(&fs::read(&path).unwrap()), [1, 2]);

        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = MessageFile::open(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("mode {mode:o}")), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for (name, target) in [("link", path.clone()), ("dangling", directory.join("none"))] {
            std::os::unix::fs::symlink(&target, directory.join(name)).unwrap();
            MessageFile::open(directory.join(name)).unwrap_err();
        }
        assert!(!directory.join("none").exists());
        MessageFile::open(&directory).unwrap_err();
        fs::remove_dir_all(directory).unwrap();
    }
}
