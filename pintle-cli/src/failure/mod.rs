//! Why a verb failed, and what to type next.

mod exit;

use std::{fmt, io, process::ExitCode};

use serde_json::Value;

pub(crate) use exit::Exit;

/// A failed verb: its exit code, the reason, and the next thing to type.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// Lines below the message, such as the signature of a tool.
    pub(crate) details: Vec<String>,
    pub(crate) next: String,
    /// The HTTP status that the server answered with, if that is the reason.
    pub(crate) status: Option<u16>,
    /// A member of the JSON form, for programs.
    pub(crate) data: Option<Box<(&'static str, Value)>>,
    /// The exit code of another program that is passed on, in place of that of `exit`.
    pub(crate) passed_on: Option<u8>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            details: Vec::new(),
            next: next.into(),
            status: None,
            data: None,
            passed_on: None,
        }
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, next)
    }

    /// The command ends with this code, and everything is printed already.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self::new(exit, "", "")
    }

    /// The command ends as a program did that it has run.
    pub(crate) fn passed_on(code: u8) -> Self {
        Self { passed_on: Some(code), ..Self::silent(Exit::Server) }
    }

    /// Returns the exit code of the command.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.passed_on.map_or_else(|| self.exit.into(), ExitCode::from)
    }

    pub(crate) fn internal(error: &dyn fmt::Display) -> Self {
        Self::usage(format!("this is a bug of `pintle`: {error}"), "pintle version")
    }

    /// The result could not be printed. A closed output, as in `pintle ls demo | head`, is a success.
    pub(crate) fn unwritten(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::silent(Exit::Success),
            _ => Self::usage(format!("the output cannot be written: {error}"), "df -h ."),
        }
    }

    /// Adds a line below the message.
    pub(crate) fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// Adds a member to the JSON form.
    pub(crate) fn data(mut self, name: &'static str, value: Value) -> Self {
        self.data = Some(Box::new((name, value)));
        self
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.message.is_empty()
    }
}
