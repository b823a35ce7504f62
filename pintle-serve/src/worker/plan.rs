use std::fmt;

use serde::Serialize;

use crate::{CommandPlan, command::quoted};

/// A call as a worker gets it.
///
/// `Display` writes it as a line for a shell, which starts the worker for this call alone.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct WorkerPlan {
    /// The name of the worker.
    pub worker: String,
    /// The line that is written to the worker.
    pub line: String,
    /// The command that starts the worker.
    pub command: CommandPlan,
}

impl fmt::Display for WorkerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "printf '%s\\n' {} | {}", quoted(&self.line), self.command)
    }
}
