use std::{error, fmt};

/// The reason why an entry cannot be served.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EntryFault {
    /// The kind of the entry: `tool`, `worker`, `prompt` or `resource`.
    pub kind: &'static str,
    /// The name of the entry.
    pub name: String,
    /// The fault, and what to write.
    pub message: String,
}

impl EntryFault {
    /// Returns a function that makes a fault of a message.
    pub(crate) fn of(kind: &'static str, name: &str) -> impl FnOnce(String) -> Self {
        move |message| Self { kind, name: name.to_owned(), message }
    }
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`: {}", self.kind, self.name, self.message)
    }
}

impl error::Error for EntryFault {}

/// The reason why a command is not run, or a request not sent, with the arguments of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallFault(pub(crate) String);

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for CallFault {}
