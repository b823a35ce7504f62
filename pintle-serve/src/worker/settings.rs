use std::{fmt, path::Path, sync::Arc};

use pintle::transport::{Child, Stderr};

use crate::{CommandPlan, WorkerEntry, environment::Environment};

/// The calls of a process at the same time, if its entry says nothing.
const MAX_RUNNING: u16 = 8;
/// The limit of bytes of a line, if the entry says nothing.
const MAX_MESSAGE: usize = 1 << 20;

/// A function that gets the name of a worker, and a line for people.
pub(super) type WorkerLog = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The settings of the processes of a worker, checked.
pub(super) struct WorkerSettings {
    pub(super) name: String,
    words: Vec<String>,
    environment: Environment,
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
        Ok(Self {
            name: name.to_owned(),
            words: entry.command.clone(),
            environment: Environment::new(folder, entry.cwd.as_deref(), &entry.env, &entry.inherit)?,
            max_running: entry.max_running.unwrap_or(MAX_RUNNING).into(),
            max_message: entry.max_message.unwrap_or(MAX_MESSAGE),
            log,
        })
    }

    /// Returns the command that starts a process.
    pub(super) fn plan(&self) -> CommandPlan {
        CommandPlan {
            words: self.words.clone(),
            env: self.environment.names(),
            cwd: self.environment.cwd.clone(),
            stdin: None,
            max_cpu: None,
        }
    }

    /// Starts a process.
    pub(super) fn start(&self) -> Result<Child, String> {
        let (program, words) = self.words.split_first().ok_or("it has no command")?;
        let (command, _) = self.environment.command(program, words).map_err(|error| error.to_string())?;
        let (log, name) = (self.log.clone(), self.name.clone());
        let command = command.limit(self.max_message).stderr(Stderr::lines(move |line| log(&name, line)));
        command.spawn().map_err(|error| error.to_string())
    }
}

/// Secrets and words are not printed.
impl fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSettings").field("name", &self.name).finish_non_exhaustive()
    }
}
