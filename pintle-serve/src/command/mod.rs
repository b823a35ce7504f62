//! A command that runs for each call.

mod plan;
mod template;

use std::{collections::BTreeMap, path::Path, time::Duration};

use pintle::{
    server::{Cx, ToolError},
    transport::Stderr,
    types::{JsonObject, schema::CallToolResult},
};
use tokio::{sync::mpsc, time::timeout};

pub use plan::CommandPlan;
pub(crate) use plan::quoted;
use template::CommandTemplate;

use crate::{
    CallFault, CommandEntry, OutputKind, ToolEntry, argument::Argument, environment::Environment, text::Text,
};

/// The bytes of output of a command, if its entry says nothing.
const MAX_OUTPUT: usize = 1 << 20;
/// The lines of progress that wait to be sent. Others are left out.
const MAX_LINES: usize = 64;

/// The command of a tool, checked.
#[derive(Debug)]
pub(crate) struct Command {
    template: CommandTemplate,
    stdin: Option<Text>,
    environment: Environment,
    output: OutputKind,
    progress: bool,
    timeout: Duration,
    max_output: usize,
}

impl Command {
    pub(crate) fn new(
        entry: &ToolEntry,
        arguments: &BTreeMap<String, Argument>,
        folder: &Path,
        timeout: Duration,
    ) -> Result<Self, String> {
        let template = match (&entry.command, entry.shell) {
            (CommandEntry::Words(words), false) => CommandTemplate::words(words, arguments, entry.flags)?,
            (CommandEntry::Line(line), true) => CommandTemplate::line(line, arguments, entry.flags)?,
            (CommandEntry::Line(_), false) => {
                return Err("`command` is a line: write a list of words, or `shell = true`".to_owned());
            }
            (CommandEntry::Words(_), true) => {
                return Err("`shell = true` needs a line: write `command` as one text".to_owned());
            }
        };
        let stdin = entry.stdin.as_deref().map(|text| Text::read(text, arguments, false)).transpose()?;
        let environment = Environment::new(folder, entry.cwd.as_deref(), &entry.env, &entry.inherit)?;
        Ok(Self {
            template,
            stdin,
            environment,
            output: entry.output.clone(),
            progress: entry.progress,
            timeout,
            max_output: entry.max_output.unwrap_or(MAX_OUTPUT),
        })
    }

    /// Returns the names of the arguments that have a place.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.template.names().chain(self.stdin.iter().flat_map(Text::names))
    }

    /// Returns the command as it runs for a call.
    pub(crate) fn plan(&self, arguments: &JsonObject) -> Result<CommandPlan, CallFault> {
        Ok(CommandPlan {
            words: self.template.fill(arguments)?,
            env: self.environment.names(),
            cwd: self.environment.cwd.clone(),
            stdin: self.stdin.as_ref().map(|text| text.print(arguments)),
        })
    }

    /// Runs the command for a call, and returns its result.
    pub(crate) async fn call(&self, cx: &Cx, arguments: &JsonObject) -> Result<CallToolResult, ToolError> {
        let plan = self.plan(arguments)?;
        let program = plan.words.first().cloned().unwrap_or_default();
        let output = self.run(cx, plan).await?;
        self.output.result(&output).map_err(|reason| ToolError::new(format!("`{program}`: {reason}")))
    }

    /// Runs a command, and returns its output.
    pub(crate) async fn run(&self, cx: &Cx, plan: CommandPlan) -> Result<Vec<u8>, ToolError> {
        let Some((program, words)) = plan.words.split_first() else {
            return Err(ToolError::new("the tool has no command"));
        };
        // What it writes is kept for the error.
        let command = self.environment.command(program, words)?.stderr(Stderr::lines(|_| {}));
        let (lines, mut reported) = mpsc::channel(MAX_LINES);
        let lines = Some(lines).filter(|_| self.progress);
        // If nobody reads them, the latest are left out.
        let on_line = move |line: &str| drop(lines.as_ref().map(|lines| lines.try_send(line.to_owned())));
        let run = command.run(plan.stdin.unwrap_or_default(), self.max_output, on_line);
        let run = timeout(self.timeout, run);
        let report = async {
            let mut number = 0_u32;
            while let Some(line) = reported.recv().await {
                number += 1;
                cx.progress_with(f64::from(number), None, &line).await;
            }
        };
        let (ran, ()) = tokio::join!(run, report);
        let Ok(ran) = ran else {
            let message = format!("`{program}` took longer than {:?}, and was ended", self.timeout);
            return Err(ToolError::new(message));
        };
        let ran = ran?;
        let mut failure = match ran.exit.status {
            _ if ran.is_cut => {
                format!("`{program}` wrote more than {} bytes, and was ended", self.max_output)
            }
            Some(status) if status.success() => return Ok(ran.stdout),
            _ => format!("`{program}` {}", ran.exit),
        };
        if let Some(words) = ran.last_words {
            failure += &format!("; its last output: {words}");
        }
        Err(ToolError::new(failure))
    }
}
