use std::fmt;

use serde::Serialize;

use crate::{CommandPlan, WorkerPlan};

/// The plan of a call of a tool. `Display` writes it as a line for a shell.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum CallPlan {
    /// A command would run.
    Command(CommandPlan),
    /// A worker would get a line.
    Worker(WorkerPlan),
}

impl fmt::Display for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(plan) => plan.fmt(f),
            Self::Worker(plan) => plan.fmt(f),
        }
    }
}
