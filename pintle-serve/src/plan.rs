use std::fmt;

use pintle_openapi::PlannedRequest;
use serde::Serialize;

use crate::{CommandPlan, WorkerPlan, command::quoted};

/// The plan of a call of a tool. `Display` writes it as a line for a shell.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum CallPlan {
    /// A command would run.
    Command(CommandPlan),
    /// A worker would get a line.
    Worker(WorkerPlan),
    /// An HTTP request would be sent. `Display` writes it as a command of curl.
    Request(PlannedRequest),
}

impl fmt::Display for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(plan) => plan.fmt(f),
            Self::Worker(plan) => plan.fmt(f),
            Self::Request(plan) => {
                if let Some(body) = plan.body.as_ref().filter(|_| plan.is_base64) {
                    write!(f, "printf %s {} | base64 -d | ", quoted(body))?;
                }
                let words: Vec<String> = plan.words().iter().map(|word| quoted(word)).collect();
                f.write_str(&words.join(" "))
            }
        }
    }
}
