//! Tools, as a file describes them.

mod request;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use pintle::types::JsonObject;
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;

pub use request::RequestEntry;

use crate::{ArgumentEntry, OutputKind, SecretValue, units::read_duration};

/// A tool of a file: a command that runs for each call, an HTTP request that is sent, or a function of a worker.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolEntry {
    /// A name for people.
    pub title: Option<String>,
    /// A text for models: what the tool does, and when.
    pub description: Option<String>,
    /// A program and its arguments, with `{name}` where a value goes; or a line for a shell, with `shell = true`.
    ///
    /// `{{` and `}}` are braces. A word whose argument is left out is left out too, a word that is a place alone becomes a word for each
    /// element of a list, and `{name?TEXT}` is TEXT if the argument is given and not `false`. A value does not begin a word with `-`, unless
    /// `--` comes before it or `flags` is set.
    pub command: CommandEntry,
    /// The name of the worker that runs the calls, in place of a `command`.
    pub worker: Option<String>,
    /// The name that the worker knows the tool by: that of the tool by default.
    pub function: Option<String>,
    /// An HTTP request, in place of a command.
    pub request: Option<RequestEntry>,
    /// Whether `command` is a line for `sh`. It gets the values as parameters: none is a part of the line.
    pub shell: bool,
    /// The arguments of calls, by their names: a type such as `"string"`, `"integer = 10"`, `"string[]"` or, for one that can be left out,
    /// `"string?"`; or a JSON Schema.
    pub arguments: BTreeMap<String, ArgumentEntry>,
    /// The whole JSON Schema of the arguments, in place of `arguments`.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    pub input_schema: Option<JsonObject>,
    /// Whether a value may begin a word with `-`, as options of programs do.
    pub flags: bool,
    /// The standard input of the command, with `{name}` where a value goes.
    pub stdin: Option<String>,
    /// The directory of the command: that of the file by default.
    pub cwd: Option<PathBuf>,
    /// Variables of the environment of the command.
    pub env: BTreeMap<String, SecretValue>,
    /// The names of variables that the command inherits, beside paths and locale; `NAME_*` for all that begin so.
    pub inherit: Vec<String>,
    /// The kind of the output, or of the answer: `text` by default, `json`, or an image or audio by its MIME type, such as `image/png`.
    pub output: OutputKind,
    /// The JSON Schema of the output of a worker, or of a command with `output = "json"`.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"))]
    pub output_schema: Option<JsonObject>,
    /// Whether each line of the output is reported as progress while the command runs.
    pub progress: bool,
    /// Whether each line of the error output of the command is logged to the client.
    pub log: bool,
    /// The time after which the command and all that it started are ended, or the request, or the call of a worker is cancelled, such as
    /// `30s`; one minute by default.
    #[serde(deserialize_with = "read_duration")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub timeout: Option<Duration>,
    /// The limit of bytes of the output or the answer: 1 MiB by default.
    pub max_output: Option<usize>,
    /// The CPU time that each process of the command has, in whole seconds, such as `10s`; without a limit by default.
    #[serde(deserialize_with = "read_duration")]
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub max_cpu: Option<Duration>,
    /// The limit of calls of this tool that run at the same time: 8 by default. Further calls wait.
    pub max_running: Option<u16>,
    /// The names of arguments that the user is asked for if a call leaves them out. Rules do not judge what the user answers, so that a file
    /// in which a rule is about such an argument is refused.
    pub ask: Vec<String>,
    /// Whether the user is shown what would run, and has to agree.
    pub confirm: bool,
    /// A key, with `{name}` where a value goes: calls of one principal with the same key run once, and all get the result of the first.
    pub once: Option<String>,
    /// Whether a call may run as a task, so that its client need not wait for it.
    pub task: bool,
    /// Whether the tool changes nothing.
    pub read_only: bool,
    /// Whether the tool may destroy something.
    pub destructive: Option<bool>,
    /// Whether a repeated call changes nothing more.
    pub idempotent: bool,
    /// Whether the tool deals with things outside of this machine.
    pub open_world: Option<bool>,
}

impl ToolEntry {
    /// Returns the texts that may be secrets, by their names: variables, and headers and pairs of the query of a request.
    pub fn secrets(&self) -> impl Iterator<Item = (&String, &SecretValue)> {
        let request = self.request.iter();
        self.env.iter().chain(request.flat_map(|request| request.headers.iter().chain(&request.query)))
    }

    /// Returns a member that is for commands only, if it is set.
    pub(crate) fn member_of_commands(&self) -> Option<&'static str> {
        let members = [
            ("command", self.command != CommandEntry::default()),
            ("shell", self.shell),
            ("flags", self.flags),
            ("stdin", self.stdin.is_some()),
            ("cwd", self.cwd.is_some()),
            ("env", !self.env.is_empty()),
            ("inherit", !self.inherit.is_empty()),
            ("progress", self.progress),
            ("log", self.log),
            ("max_cpu", self.max_cpu.is_some()),
        ];
        members.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
    }
}

/// A command of a file.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "a command is words or a line")]
pub enum CommandEntry {
    /// A program and its arguments.
    Words(Vec<String>),
    /// A line for a shell.
    Line(String),
}

impl Default for CommandEntry {
    fn default() -> Self {
        Self::Words(Vec::new())
    }
}
