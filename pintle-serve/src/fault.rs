use std::{error, fmt};

/// The reason why an entry is no tool.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolFault {
    /// The name of the tool.
    pub tool: String,
    /// The fault, and what to write.
    pub message: String,
}

impl fmt::Display for ToolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}`: {}", self.tool, self.message)
    }
}

impl error::Error for ToolFault {}

/// The reason why a command is not run with the arguments of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallFault(pub(crate) String);

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for CallFault {}
