//! The CPU time of the processes of a bridge.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{LOOK, MARK};

/// The CPU time of all processes that have a mark in their environment, also of those that have ended.
pub(super) struct MarkedCpu {
    seconds: Arc<Mutex<Threads>>,
    ended: Arc<AtomicBool>,
}

/// The CPU time of each thread, in seconds.
type Threads = HashMap<u32, f64>;

impl MarkedCpu {
    /// Reads it again and again, until this is dropped. The server behind a bridge does not count.
    pub(super) fn watch(mark: &str, without_server: bool) -> Self {
        let this = Self { seconds: Arc::default(), ended: Arc::default() };
        let (seconds, ended) = (this.seconds.clone(), this.ended.clone());
        let variable = format!("{MARK}={mark}");
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                lock(&seconds).extend(marked(&variable, without_server));
                thread::sleep(LOOK);
            }
        });
        this
    }

    /// Returns the time of all of them, in seconds.
    pub(super) fn total(&self) -> f64 {
        lock(&self.seconds).values().sum()
    }
}

fn lock(threads: &Mutex<Threads>) -> MutexGuard<'_, Threads> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for MarkedCpu {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Returns the threads of the processes with a variable in their environment, and their CPU time in seconds.
fn marked(variable: &str, without_server: bool) -> Vec<(u32, f64)> {
    let of_bridge = numbered("/proc").into_iter().filter(|id| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let has_mark = environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes());
        let is_server = || fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe.ends_with("served"));
        has_mark && !(without_server && is_server())
    });
    let threads = of_bridge.flat_map(|id| {
        let folder = format!("/proc/{id}/task");
        numbered(&folder).into_iter().map(move |thread| (thread, format!("{folder}/{thread}/schedstat")))
    });
    threads.filter_map(|(id, file)| Some((id, seconds(&fs::read_to_string(file).ok()?)?))).collect()
}

/// Returns the entries of a folder whose names are numbers.
fn numbered(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Reads the CPU time of a thread, in seconds, from its `schedstat`, which has it in nanoseconds.
fn seconds(schedstat: &str) -> Option<f64> {
    Some(schedstat.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_thread_is_its_first_number() {
        assert_eq!(seconds("1500000000 20 300\n"), Some(1.5));
        assert_eq!(seconds(""), None);
    }
}
