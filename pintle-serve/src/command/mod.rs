//! A command that runs for each call.

mod line;
mod plan;
mod script;
mod template;

use std::{collections::BTreeMap, path::Path, process::ExitStatus, time::Duration};

use pintle::{
    server::{Cx, ToolError},
    transport::Stderr,
    types::{
        JsonObject,
        schema::{CallToolResult, LoggingLevel},
    },
};
use tokio::{
    sync::mpsc::{self, WeakSender},
    time::timeout,
};

pub use plan::{CommandPlan, quoted};
use template::CommandTemplate;

use crate::{
    CallFault, CommandEntry, OutputKind, ToolEntry, argument::Argument, environment::Environment, text::Text,
};

/// The bytes of output of a command, if its entry says nothing.
const MAX_OUTPUT: usize = 1 << 20;
/// The most words of a command. Systems count each, also an empty one.
const MAX_WORDS: usize = 4_096;
/// The lines that wait to be reported. Others are left out.
const MAX_LINES: usize = 64;

/// The command of a tool, checked.
#[derive(Debug)]
pub(crate) struct Command {
    template: CommandTemplate,
    stdin: Option<Text>,
    pub(crate) environment: Environment,
    output: OutputKind,
    progress: bool,
    log: bool,
    max_cpu: Option<u64>,
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
        let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Ok(Self {
            template,
            stdin,
            environment,
            output: entry.output.clone(),
            progress: entry.progress,
            log: entry.log,
            max_cpu: entry.max_cpu.map(seconds),
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
        let words = self.template.fill(arguments)?;
        if words.len() > MAX_WORDS {
            return Err(CallFault(format!(
                "the command has {} words, and {MAX_WORDS} are allowed: send shorter lists, in several calls",
                words.len()
            )));
        }
        Ok(CommandPlan {
            words,
            env: self.environment.names(),
            cwd: self.environment.cwd.clone(),
            stdin: self.stdin.as_ref().map(|text| text.print(arguments)),
            max_cpu: self.max_cpu,
        })
    }

    /// Runs the command for a call, and returns its result.
    pub(crate) async fn call(
        &self,
        cx: &Cx,
        tool: &str,
        arguments: &JsonObject,
    ) -> Result<CallToolResult, ToolError> {
        let plan = self.plan(arguments)?;
        let program = plan.words.first().cloned().unwrap_or_default();
        let output = self.run(cx, self.log.then_some(tool), plan).await?;
        self.output.result(&output).map_err(|reason| ToolError::new(format!("`{program}`: {reason}")))
    }

    /// Runs a command, and returns its output. The lines of its error output are logged if there is a logger.
    pub(crate) async fn run(
        &self,
        cx: &Cx,
        logger: Option<&str>,
        plan: CommandPlan,
    ) -> Result<Vec<u8>, ToolError> {
        let (words, Some(program)) = (plan.limited_words(), plan.words.first()) else {
            return Err(ToolError::new("the tool has no command"));
        };
        let (lines, mut reported) = mpsc::channel(MAX_LINES);
        // A process that is left may hold the outputs: lines end with the command.
        let logged = Some(lines.downgrade()).filter(|_| logger.is_some());
        let on_error = move |line: &str| {
            let lines = logged.as_ref().and_then(WeakSender::upgrade);
            drop(lines.map(|lines| lines.try_send(ReportedLine::Log(line.to_owned()))));
        };
        let (progress, until_end) = (self.progress, lines.clone());
        // If nobody reads them, the latest are left out.
        let on_line = move |line: &str| {
            if progress {
                let _ = lines.try_send(ReportedLine::Progress(line.to_owned()));
            }
        };
        let (command, redaction) = self.environment.command(&words[0], &words[1..])?;
        let command = command.stderr(Stderr::lines(on_error));
        let run = command.run(plan.stdin.unwrap_or_default(), self.max_output, on_line);
        let run = async {
            let ran = timeout(self.timeout, run).await;
            drop(until_end);
            ran
        };
        let report = async {
            let mut number = 0_u32;
            while let Some(line) = reported.recv().await {
                match line {
                    ReportedLine::Log(line) => {
                        cx.log(LoggingLevel::Info, logger, &redaction.apply(&line)).await;
                    }
                    ReportedLine::Progress(line) => {
                        number += 1;
                        cx.progress_with(f64::from(number), None, &redaction.apply(&line)).await;
                    }
                }
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
            Some(status) if is_out_of_cpu(status) && self.max_cpu.is_some() => {
                let seconds = self.max_cpu.unwrap_or_default();
                format!("`{program}` used more than {seconds} s of CPU time, and was ended")
            }
            _ => format!("`{program}` {}", ran.exit),
        };
        if let Some(words) = ran.last_words {
            failure += &format!("; its last output: {}", redaction.apply(&words));
        }
        Err(ToolError::new(failure))
    }
}

/// A line of a command that runs.
enum ReportedLine {
    Progress(String),
    Log(String),
}

/// Returns whether a process, or the command of a shell, was ended by `SIGXCPU`.
fn is_out_of_cpu(status: ExitStatus) -> bool {
    /// The number of `SIGXCPU`.
    const SIGNAL: i32 = 24;
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    signal == Some(SIGNAL) || status.code() == Some(128 + SIGNAL)
}
