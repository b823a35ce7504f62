use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

/// The limit of lines that wait to be written, which have some hundred bytes each.
const MAX_WAITING: usize = 1_024;
/// The time that waiting lines have to be written when the service ends.
const FLUSH: Duration = Duration::from_secs(1);

/// A queue of the lines of a log, and the thread that writes them, so that nothing else waits for standard error. Lines for which the queue has no room are lost,
/// and counted.
pub(in crate::output) struct LogQueue {
    messages: SyncSender<QueuedLine>,
    lost: Arc<AtomicU64>,
}

enum QueuedLine {
    Text(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

impl LogQueue {
    /// Starts the thread. `report` returns the line that says how many lines are lost.
    pub(super) fn start(
        write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
        report: impl Fn(u64) -> Vec<u8> + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, waiting) = sync_channel(MAX_WAITING);
        let lost = Arc::<AtomicU64>::default();
        let counted = lost.clone();
        thread::Builder::new().name("log".into()).spawn(move || run(&waiting, &counted, write, report))?;
        Ok(Self { messages, lost })
    }

    /// Has a line written, without waiting for it.
    pub(super) fn write(&self, line: Vec<u8>) {
        if self.messages.try_send(QueuedLine::Text(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of lines that are lost.
    pub(in crate::output) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, for a limited time.
    pub(in crate::output) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.messages.try_send(QueuedLine::Flush(done)).is_ok() {
            let _ = tokio::time::timeout(FLUSH, flushed).await;
        }
    }
}

/// Writes until the queue is dropped. Where nobody reads any more, lines are lost.
fn run(
    messages: &Receiver<QueuedLine>,
    lost: &AtomicU64,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
    report: impl Fn(u64) -> Vec<u8>,
) {
    let mut reported = 0;
    while let Ok(message) = messages.recv() {
        match message {
            QueuedLine::Text(line) => {
                if write(&line).is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            QueuedLine::Flush(done) => drop(done.send(())),
        }
        let now = lost.load(Ordering::Relaxed);
        if now > reported && write(&report(now - reported)).is_ok() {
            reported = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    #[tokio::test]
    async fn who_does_not_read_stops_nothing_and_is_told_what_is_lost() {
        let (begun, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = written.clone();
        let write = move |line: &[u8]| {
            if line == b"first\n" {
                begun.send(()).unwrap();
                // Until the test reads.
                released.recv().unwrap();
            }
            kept.lock().unwrap().push(String::from_utf8(line.to_vec()).unwrap());
            Ok(())
        };
        let queue = LogQueue::start(write, |lost| format!("lost {lost}\n").into_bytes()).unwrap();
        queue.write(b"first\n".to_vec());
        begins.recv().unwrap();
        for _ in 0..MAX_WAITING + 2 {
            queue.write(b"more\n".to_vec());
        }
        assert_eq!(queue.lost(), 2);
        release.send(()).unwrap();
        while written.lock().unwrap().len() < MAX_WAITING + 2 {
            tokio::task::yield_now().await;
        }
        queue.flush().await;
        let written = written.lock().unwrap();
        assert_eq!((&*written[0], &*written[1]), ("first\n", "lost 2\n"));
        assert_eq!(written.iter().filter(|line| *line == "more\n").count(), MAX_WAITING);
    }
}
