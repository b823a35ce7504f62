use std::{
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use super::{AccessLog, JsonLog};
use crate::{failure::Failure, output::Output, verbs::gateway::metrics::RequestMetrics};

/// The logs that are open at the moment. Clones share them.
#[derive(Clone)]
pub(in super::super) struct CurrentLogs(Arc<RwLock<Arc<OpenLogs>>>);

/// The paths of logs.
pub(in super::super) struct LogPaths<'a> {
    pub(in super::super) audit: Option<&'a Path>,
    pub(in super::super) access: Option<&'a Path>,
}

/// The logs of a file.
pub(in super::super) struct OpenLogs {
    audit: Option<JsonLog>,
    is_required: bool,
    access: AccessLog,
}

impl CurrentLogs {
    pub(in super::super) fn new(logs: OpenLogs) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(logs))))
    }

    pub(in super::super) fn get(&self) -> Arc<OpenLogs> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes to these from now on. What waits for the others is written there.
    pub(in super::super) fn replace(&self, logs: OpenLogs) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(logs);
    }
}

impl OpenLogs {
    /// Opens logs, but for those that are open already.
    pub(in super::super) fn open(
        paths: &LogPaths<'_>,
        known: Option<&Self>,
        metrics: &Arc<RequestMetrics>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let open = |path: &Path| {
            let known = known.into_iter().flat_map(Self::all).find(|(_, log)| log.path() == path);
            known.map_or_else(|| JsonLog::open(path, output), |(_, log)| Ok(log.clone()))
        };
        Ok(Self {
            audit: paths.audit.map(open).transpose()?,
            is_required: false,
            access: AccessLog::new(paths.access.map(open).transpose()?, metrics.clone()),
        })
    }

    /// Has nothing used while the audit log cannot be written.
    pub(in super::super) fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub(in super::super) fn audit(&self) -> Option<&JsonLog> {
        self.audit.as_ref()
    }

    pub(in super::super) fn access(&self) -> &AccessLog {
        &self.access
    }

    /// Returns whether nothing may be used, because it could not be written down.
    pub(in super::super) fn refuse(&self) -> bool {
        self.is_required && self.audit.as_ref().is_none_or(JsonLog::is_failing)
    }

    /// Returns the files that are written, by their options.
    pub(in super::super) fn all(&self) -> impl Iterator<Item = (&'static str, &JsonLog)> {
        let access = self.access.file().map(|log| ("access_log", log));
        self.audit.iter().map(|log| ("audit", log)).chain(access)
    }
}
