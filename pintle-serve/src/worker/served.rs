use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{
    WorkerEntry,
    pool::WorkerPool,
    settings::{WorkerLog, WorkerSettings},
};
use crate::{EntryFault, environment::OnStart};

/// The workers of a file, checked. A process is started with the first call, and ended when this and the tools of the worker are dropped.
#[derive(Clone, Debug, Default)]
pub struct ServedWorkers(BTreeMap<String, Arc<WorkerPool>>);

impl ServedWorkers {
    /// Checks the entries of a file. Programs run in its folder, unless an entry says otherwise. `log` is called with the name of a worker
    /// and a line for people: one of its standard error, or what is wrong with its output.
    ///
    /// # Errors
    ///
    /// An entry is wrong. The error says what to write.
    ///
    /// ```
    /// use std::{collections::BTreeMap, path::Path};
    ///
    /// use pintle_serve::{ServedTools, ServedWorkers, ToolEntry, WorkerEntry};
    ///
    /// let workers: BTreeMap<String, WorkerEntry> = serde_json::from_str(r#"{"tools": {"command": ["python3", "tools.py"]}}"#)?;
    /// let entries: BTreeMap<String, ToolEntry> =
    ///     serde_json::from_str(r#"{"echo": {"worker": "tools", "arguments": {"text": "string"}}}"#)?;
    /// let folder = Path::new("docs/workers");
    /// let workers = ServedWorkers::new(&workers, folder, |worker, line| eprintln!("{worker}: {line}"))?;
    /// let tools = ServedTools::with_workers(&entries, &workers, folder)?;
    /// assert_eq!(tools.routes().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        entries: &BTreeMap<String, WorkerEntry>,
        folder: &Path,
        log: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> Result<Self, EntryFault> {
        let log: WorkerLog = Arc::new(log);
        let pool = |(name, entry): (&String, &WorkerEntry)| {
            let settings = WorkerSettings::new(name, entry, folder, log.clone());
            let settings = settings.map_err(EntryFault::of("worker", name))?;
            Ok((name.clone(), Arc::new(WorkerPool::new(settings))))
        };
        entries.iter().map(pool).collect::<Result<_, _>>().map(Self)
    }

    /// Sets a function that is called with the id of the process group of each process that has started. What it returns is dropped when the
    /// process and all of its group are gone.
    #[must_use]
    pub fn on_start<G: Send + Sync + 'static>(
        mut self,
        callback: impl Fn(u32) -> G + Send + Sync + 'static,
    ) -> Self {
        let on_start: OnStart = Arc::new(move |group| Box::new(callback(group)));
        for pool in self.0.values_mut().filter_map(Arc::get_mut) {
            pool.set_on_start(&on_start);
        }
        self
    }

    /// Replaces the workers whose entries are the same as those of `running`, whose processes go on.
    #[must_use]
    pub fn keeping(mut self, running: &Self) -> Self {
        for (name, pool) in &mut self.0 {
            if let Some(kept) = running.0.get(name).filter(|kept| kept.settings.are_like(&pool.settings)) {
                pool.clone_from(kept);
            }
        }
        self
    }

    pub(super) fn pool(&self, name: &str) -> Option<&Arc<WorkerPool>> {
        self.0.get(name)
    }
}
