use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pintle::{
    server::{Arguments, Cx, ToolError, ToolRoute},
    transport::{Child, Stderr},
    types::{
        JsonObject,
        schema::{CallToolResult, Tool, ToolAnnotations},
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};

use crate::{
    CallFault, CommandEntry, CommandPlan, CommandTemplate, OutputKind, SecretValue, ToolEntry, ToolFault,
    argument::Argument, template::Text,
};

/// The time that a command has, if its entry says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The time that a call waits for other commands of its tool.
const QUEUE: Duration = Duration::from_secs(60);
/// The time that a command has to end after its input was closed, and after `SIGTERM`.
const GRACE: Duration = Duration::from_millis(500);
/// The bytes of output of a command, if its entry says nothing.
const MAX_OUTPUT: usize = 1 << 20;
/// The commands of a tool that run at the same time, if its entry says nothing.
const MAX_RUNNING: u16 = 8;
/// The most bytes of a line that is reported as progress, and the lines that wait to be sent. Others are left out.
const MAX_LINE: usize = 1 << 10;
const MAX_LINES: usize = 64;

/// The tools of a file, checked.
#[derive(Debug)]
pub struct ServedTools(Vec<Arc<ServedTool>>);

#[derive(Debug)]
struct ServedTool {
    tool: Tool,
    command: CommandTemplate,
    stdin: Option<Text>,
    cwd: PathBuf,
    env: BTreeMap<String, SecretValue>,
    inherit: Vec<String>,
    output: OutputKind,
    progress: bool,
    timeout: Duration,
    max_output: usize,
    running: Semaphore,
}

impl ServedTools {
    /// Checks the entries of a file. Commands run in its folder, unless an entry says otherwise.
    ///
    /// # Errors
    ///
    /// An entry is wrong. The error says what to write.
    pub fn new(entries: &BTreeMap<String, ToolEntry>, folder: &Path) -> Result<Self, ToolFault> {
        let tool = |(name, entry): (&String, &ToolEntry)| {
            let tool = ServedTool::new(name, entry, folder);
            tool.map(Arc::new).map_err(|message| ToolFault { tool: name.clone(), message })
        };
        entries.iter().map(tool).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the routes of the tools, for [`Server::tool`](pintle::Server::tool) or
    /// [`Server::replace_tools`](pintle::Server::replace_tools).
    pub fn routes(&self) -> Vec<ToolRoute> {
        self.0.iter().map(ServedTool::route).collect()
    }

    /// Returns the definition of a tool.
    pub fn definition(&self, name: &str) -> Option<&Tool> {
        Some(&self.find(name)?.tool)
    }

    /// Returns the command that a call of a tool would run; `None` if there is no tool of this name.
    ///
    /// # Errors
    ///
    /// The command would not run with these arguments.
    pub fn plan(&self, name: &str, arguments: &JsonObject) -> Option<Result<CommandPlan, CallFault>> {
        Some(self.find(name)?.plan(&self.find(name)?.with_defaults(arguments)))
    }

    fn find(&self, name: &str) -> Option<&Arc<ServedTool>> {
        self.0.iter().find(|served| served.tool.name == name)
    }
}

impl ServedTool {
    fn new(name: &str, entry: &ToolEntry, folder: &Path) -> Result<Self, String> {
        let mut arguments = BTreeMap::new();
        for (name, argument) in &entry.arguments {
            let argument = argument.argument().map_err(|message| format!("argument `{name}`: {message}"))?;
            arguments.insert(name.clone(), argument);
        }
        let command = match (&entry.command, entry.shell) {
            (CommandEntry::Words(words), false) => CommandTemplate::words(words, &arguments, entry.flags)?,
            (CommandEntry::Line(line), true) => CommandTemplate::line(line, &arguments, entry.flags)?,
            (CommandEntry::Line(_), false) => {
                return Err("`command` is a line: write a list of words, or `shell = true`".to_owned());
            }
            (CommandEntry::Words(_), true) => {
                return Err("`shell = true` needs a line: write `command` as one text".to_owned());
            }
        };
        let stdin = entry.stdin.as_deref().map(|text| Text::read(text, &arguments, false)).transpose()?;
        let used: Vec<&str> = command.names().chain(stdin.iter().flat_map(Text::names)).collect();
        if let Some(unused) = arguments.keys().find(|name| !used.contains(&name.as_str())) {
            return Err(format!(
                "argument `{unused}` has no place: write `{{{unused}}}` in `command` or `stdin`"
            ));
        }
        if entry.output_schema.is_some() && entry.output != OutputKind::Json {
            return Err("`output_schema` is for `output = \"json\"`: add that".to_owned());
        }
        if entry.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err("a variable of `env` has a name that no program takes: change it".to_owned());
        }
        if entry.max_running == Some(0) || entry.timeout == Some(Duration::ZERO) {
            return Err("a limit of 0 would let nothing run: remove it, or write another".to_owned());
        }
        let cwd = folder.join(entry.cwd.as_deref().unwrap_or(Path::new("")));
        Ok(Self {
            tool: definition(name, entry, &arguments),
            command,
            stdin,
            cwd: if cwd.as_os_str().is_empty() { PathBuf::from(".") } else { cwd },
            env: entry.env.clone(),
            inherit: entry.inherit.clone(),
            output: entry.output.clone(),
            progress: entry.progress,
            timeout: entry.timeout.unwrap_or(TIMEOUT),
            max_output: entry.max_output.unwrap_or(MAX_OUTPUT),
            running: Semaphore::new(entry.max_running.unwrap_or(MAX_RUNNING).into()),
        })
    }

    fn route(self: &Arc<Self>) -> ToolRoute {
        let served = self.clone();
        let handler = move |cx: Cx, Arguments(arguments)| {
            let served = served.clone();
            async move {
                let arguments = serde_json::from_str(arguments.as_str())?;
                served.call(&cx, &arguments).await
            }
        };
        ToolRoute::of(self.tool.clone(), handler).timeout(self.timeout.saturating_add(QUEUE))
    }

    /// Runs the command for a call.
    async fn call(&self, cx: &Cx, arguments: &JsonObject) -> Result<CallToolResult, ToolError> {
        let plan = self.plan(arguments)?;
        let _turn = self.running.acquire().await?;
        let Some((program, words)) = plan.words.split_first() else {
            return Err(ToolError::new("the tool has no command"));
        };
        let mut command =
            Child::command(program).args(words).inherit_env(&self.inherit).current_dir(&plan.cwd);
        for (name, value) in &self.env {
            command = command.env(name, value.read()?);
        }
        // What it writes is kept for the error.
        let command = command.grace(GRACE).stderr(Stderr::lines(|_| {}));
        let (lines, mut reported) = mpsc::channel(MAX_LINES);
        let mut lines = Lines { lines: Some(lines).filter(|_| self.progress), line: Vec::new() };
        let run = async {
            let ran = command.run(plan.stdin.unwrap_or_default(), self.max_output, |part| lines.add(part));
            let ran = timeout(self.timeout, ran).await;
            lines.lines = None;
            ran
        };
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
            Some(status) if status.success() => {
                return self
                    .output
                    .result(&ran.stdout)
                    .map_err(|reason| ToolError::new(format!("`{program}`: {reason}")));
            }
            _ => format!("`{program}` {}", ran.exit),
        };
        if let Some(words) = ran.last_words {
            failure += &format!("; its last output: {words}");
        }
        Err(ToolError::new(failure))
    }

    fn plan(&self, arguments: &JsonObject) -> Result<CommandPlan, CallFault> {
        Ok(CommandPlan {
            words: self.command.fill(arguments)?,
            env: self.env.keys().cloned().collect(),
            cwd: self.cwd.clone(),
            stdin: self.stdin.as_ref().map(|text| text.print(arguments)),
        })
    }

    /// Returns the arguments with the defaults of those that are left out.
    fn with_defaults(&self, arguments: &JsonObject) -> JsonObject {
        let mut filled = arguments.clone();
        let properties = self.tool.input_schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            if let Some(default) = schema.get("default").filter(|_| !arguments.contains_key(name)) {
                filled.insert(name.clone(), default.clone());
            }
        }
        filled
    }
}

/// Returns the tool as clients list it.
fn definition(name: &str, entry: &ToolEntry, arguments: &BTreeMap<String, Argument>) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    let properties = arguments.iter().map(|(name, argument)| (name.clone(), argument.schema.clone()));
    schema.insert("properties".to_owned(), Value::Object(properties.collect()));
    let required =
        arguments.iter().filter(|(_, argument)| argument.is_required).map(|(name, _)| name.as_str());
    schema.insert("required".to_owned(), required.collect());
    let mut tool = Tool::new(name, schema);
    tool.title.clone_from(&entry.title);
    tool.description.clone_from(&entry.description);
    tool.output_schema = entry.output_schema.clone().map(Into::into);
    let mut hints = ToolAnnotations::default();
    hints.read_only_hint = entry.read_only.then_some(true);
    hints.destructive_hint = entry.destructive;
    hints.idempotent_hint = entry.idempotent.then_some(true);
    hints.open_world_hint = entry.open_world;
    tool.annotations = (hints != ToolAnnotations::default()).then_some(hints);
    tool
}

/// The lines of an output.
struct Lines {
    lines: Option<mpsc::Sender<String>>,
    line: Vec<u8>,
}

impl Lines {
    fn add(&mut self, part: &[u8]) {
        let Some(lines) = &self.lines else { return };
        for piece in part.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
                self.line.clear();
                // If nobody reads them, the latest are left out.
                let _ = lines.try_send(line);
            }
        }
    }
}
