use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use pintle::transport::{Child, Stderr};
use pintle_openapi::Redaction;
use tokio::sync::Notify;

use crate::{CommandPlan, WorkerEntry, environment::Environment};

/// The calls of a process at the same time, if its entry says nothing.
const MAX_RUNNING: u16 = 8;
/// The limit of processes of a worker.
const MAX_PROCESSES: u16 = 64;
/// The limit of bytes of a line, if the entry says nothing.
const MAX_MESSAGE: usize = 1 << 20;

/// The limit of bytes that a process writes while it has no call.
pub(super) const MAX_IDLE: usize = 1 << 20;

/// A function that gets the name of a worker, and a line for people.
pub(super) type WorkerLog = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The settings of the processes of a worker, checked.
pub(super) struct WorkerSettings {
    pub(super) name: String,
    entry: WorkerEntry,
    folder: PathBuf,
    /// The command that starts a process.
    pub(super) plan: CommandPlan,
    pub(super) environment: Environment,
    pub(super) processes: usize,
    /// The calls of a process at the same time.
    pub(super) max_running: usize,
    pub(super) max_message: usize,
    pub(super) log: WorkerLog,
}

impl WorkerSettings {
    pub(super) fn new(
        name: &str,
        entry: &WorkerEntry,
        folder: &Path,
        log: WorkerLog,
    ) -> Result<Self, String> {
        if entry.command.first().is_none_or(String::is_empty) {
            return Err("it has no command: add `command = [\"PROGRAM\", \"ARGUMENT\"]`".to_owned());
        }
        if entry.command.iter().any(|word| word.contains('\0')) {
            return Err("a word of the command holds a NUL, which no program takes: remove it".to_owned());
        }
        let processes = entry.processes.unwrap_or(1);
        if processes == 0 || entry.max_running == Some(0) || entry.max_message == Some(0) {
            return Err("a limit of 0 would let nothing run: remove it, or write another".to_owned());
        }
        if processes > MAX_PROCESSES {
            return Err(format!("`processes` is {processes}: write at most {MAX_PROCESSES}"));
        }
        let environment = Environment::new(folder, entry.cwd.as_deref(), &entry.env, &entry.inherit)?;
        Ok(Self {
            name: name.to_owned(),
            entry: entry.clone(),
            folder: folder.to_owned(),
            processes: processes.into(),
            plan: CommandPlan {
                words: entry.command.clone(),
                env: environment.names(),
                cwd: environment.cwd.clone(),
                stdin: None,
                max_cpu: None,
            },
            environment,
            max_running: entry.max_running.unwrap_or(MAX_RUNNING).into(),
            max_message: entry.max_message.unwrap_or(MAX_MESSAGE),
            log,
        })
    }

    /// Returns whether both run the same.
    pub(super) fn are_like(&self, other: &Self) -> bool {
        self.entry == other.entry && self.folder == other.folder
    }

    /// Starts a process. `flooded` is notified when it has written too much without a call.
    pub(super) fn start(&self, flooded: &Arc<Notify>) -> Result<(Child, Arc<IdleOutput>, Redaction), String> {
        let (program, words) = self.plan.words.split_first().ok_or("it has no command")?;
        let (command, redaction) =
            self.environment.command(program, words).map_err(|error| error.to_string())?;
        let (log, name, flooded) = (self.log.clone(), self.name.clone(), flooded.clone());
        let idle = Arc::new(IdleOutput::default());
        let written = idle.clone();
        let command = command.limit(self.max_message).stderr(Stderr::lines(move |line| log(&name, line)));
        let command = command.on_output(move |bytes| {
            if written.add(bytes) {
                flooded.notify_one();
            }
        });
        Ok((command.spawn().map_err(|error| error.to_string())?, idle, redaction))
    }
}

/// The number of bytes that a process has written since it has no call; `None` while it has one.
#[derive(Debug, Default)]
pub(super) struct IdleOutput(Mutex<Option<usize>>);

impl IdleOutput {
    /// Begins to count, or ends it.
    pub(super) fn begin(&self, is_idle: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = is_idle.then_some(0);
    }

    /// Adds bytes. Returns whether there are too many.
    pub(super) fn add(&self, bytes: usize) -> bool {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *written = written.map(|before| before.saturating_add(bytes));
        written.is_some_and(|written| written > MAX_IDLE)
    }
}

/// Secrets and words are not printed.
impl fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSettings").field("name", &self.name).finish_non_exhaustive()
    }
}
