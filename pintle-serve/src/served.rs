use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use pintle::{
    schema::Schema,
    server::{Arguments, Cx, ToolError, ToolRoute},
    types::{
        JsonObject,
        schema::{CallToolResult, TaskSupport, Tool, ToolAnnotations, ToolExecution},
    },
};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{
    CallFault, CallPlan, EntryFault, OutputKind, ServedWorkers, ToolEntry,
    argument::{Argument, all_used, arguments_of, check, checked, input_schema},
    command::Command,
    environment::OnStart,
    once::Once,
    questions::Questions,
    request::Request,
    turn::{QUEUE, turn},
    worker::WorkerTool,
};

/// The time that a call has, if its entry says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The calls of a tool that run at the same time, if its entry says nothing.
const MAX_RUNNING: u16 = 8;

/// The tools of a file, checked.
#[derive(Debug)]
pub struct ServedTools(Vec<Arc<ServedTool>>);

#[derive(Debug)]
struct ServedTool {
    tool: Tool,
    questions: Questions,
    action: Action,
    once: Option<Once>,
    timeout: Duration,
    running: Semaphore,
}

/// The action of a call.
#[derive(Debug)]
enum Action {
    Command(Command),
    Request(Box<Request>),
    Worker(WorkerTool),
}

impl ServedTools {
    /// Checks the entries of a file without workers. Commands run in its folder, unless an entry says otherwise.
    ///
    /// # Errors
    ///
    /// An entry is wrong. The error says what to write.
    pub fn new(entries: &BTreeMap<String, ToolEntry>, folder: &Path) -> Result<Self, EntryFault> {
        Self::with_workers(entries, &ServedWorkers::default(), folder)
    }

    /// Checks the entries of a file, of which some are functions of workers.
    ///
    /// # Errors
    ///
    /// An entry is wrong. The error says what to write.
    pub fn with_workers(
        entries: &BTreeMap<String, ToolEntry>,
        workers: &ServedWorkers,
        folder: &Path,
    ) -> Result<Self, EntryFault> {
        let tool = |(name, entry): (&String, &ToolEntry)| {
            let tool = ServedTool::new(name, entry, workers, folder);
            tool.map(Arc::new).map_err(EntryFault::of("tool", name))
        };
        entries.iter().map(tool).collect::<Result<_, _>>().map(Self)
    }

    /// Has tools know the calls that `once` knows of the tools with the same names and keys in `running`.
    #[must_use]
    pub fn keeping(mut self, running: &Self) -> Self {
        for served in self.0.iter_mut().filter_map(Arc::get_mut) {
            let before = running.find(&served.tool.name).and_then(|before| before.once.as_ref());
            if let (Some(once), Some(before)) = (&mut served.once, before) {
                once.keep(before);
            }
        }
        self
    }

    /// Sets a function that is called with the id of the process group of each command that has started. What it returns is dropped when the
    /// process and all of its group are gone.
    #[must_use]
    pub fn on_start<G: Send + Sync + 'static>(
        mut self,
        callback: impl Fn(u32) -> G + Send + Sync + 'static,
    ) -> Self {
        let on_start: OnStart = Arc::new(move |group| Box::new(callback(group)));
        for served in self.0.iter_mut().filter_map(Arc::get_mut) {
            if let Action::Command(command) = &mut served.action {
                command.environment.set_on_start(on_start.clone());
            }
        }
        self
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

    /// Returns whether a tool can run as a task, for which a server needs `Tasks` of the crate `pintle-tasks`.
    pub fn have_tasks(&self) -> bool {
        self.0.iter().any(|served| served.tool.execution.is_some())
    }

    /// Returns what a call of a tool would run; `None` if there is no tool of this name.
    ///
    /// # Errors
    ///
    /// The call would be refused with these arguments.
    pub fn plan(&self, name: &str, arguments: &JsonObject) -> Option<Result<CallPlan, CallFault>> {
        let served = self.find(name)?;
        let checked = served.check(arguments);
        Some(checked.and_then(|()| served.plan(&served.with_defaults(arguments))))
    }

    fn find(&self, name: &str) -> Option<&Arc<ServedTool>> {
        self.0.iter().find(|served| served.tool.name == name)
    }
}

impl ServedTool {
    fn new(name: &str, entry: &ToolEntry, workers: &ServedWorkers, folder: &Path) -> Result<Self, String> {
        let mut arguments = match &entry.input_schema {
            None => checked(&entry.arguments)?,
            Some(_) if !entry.arguments.is_empty() || !entry.ask.is_empty() => {
                return Err(
                    "`input_schema` is in place of `arguments` and `ask`: remove it, or them".to_owned()
                );
            }
            Some(schema) => arguments_of(schema)?,
        };
        let is_command = entry.worker.is_none();
        if is_command && entry.output_schema.is_some() && entry.output != OutputKind::Json {
            return Err("`output_schema` is for `output = \"json\"`: add that".to_owned());
        }
        if let Some(schema) = &entry.output_schema {
            Schema::compile(&Value::Object(schema.clone()))
                .map_err(|error| format!("`output_schema`: {error}"))?;
        }
        let times = [entry.timeout, entry.max_cpu];
        if entry.max_running == Some(0) || times.contains(&Some(Duration::ZERO)) {
            return Err("a limit of 0 would let nothing run: remove it, or write another".to_owned());
        }
        if is_command && entry.function.is_some() {
            return Err("`function` is that of a worker: add `worker = \"NAME\"`".to_owned());
        }
        let once = entry.once.as_ref().map(|key| Once::new(key, &arguments, &entry.ask)).transpose()?;
        let questions = Questions::new(&entry.ask, entry.confirm, &mut arguments)?;
        let timeout = entry.timeout.unwrap_or(TIMEOUT);
        let action = match (&entry.worker, &entry.request) {
            (None, None) => Action::Command(Command::new(entry, &arguments, folder, timeout)?),
            (None, Some(request)) => {
                Action::Request(Box::new(Request::new(request, entry, &arguments, timeout)?))
            }
            (Some(_), Some(_)) => {
                return Err("it has a `worker` and a `request`: remove one of them".to_owned());
            }
            (Some(worker), None) => Action::Worker(WorkerTool::new(name, worker, entry, workers, timeout)?),
        };
        let used = match &action {
            Action::Command(command) => Some(command.names().collect()),
            Action::Request(request) => Some(request.names()),
            // It gets all of them.
            Action::Worker(_) => None,
        };
        if let Some(used) = used {
            all_used(&arguments, used.into_iter().chain(once.iter().flat_map(Once::names)))?;
        }
        Ok(Self {
            tool: definition(name, entry, &arguments),
            questions,
            once,
            action,
            timeout,
            running: Semaphore::new(entry.max_running.unwrap_or(MAX_RUNNING).into()),
        })
    }

    fn route(self: &Arc<Self>) -> ToolRoute {
        let served = self.clone();
        let handler = move |cx: Cx, Arguments(arguments)| {
            let served = served.clone();
            async move {
                let arguments = serde_json::from_str(arguments.as_str())?;
                served.call(&cx, arguments).await
            }
        };
        ToolRoute::of(self.tool.clone(), handler).timeout(self.timeout.saturating_add(QUEUE))
    }

    async fn call(&self, cx: &Cx, mut arguments: JsonObject) -> Result<CallToolResult, ToolError> {
        if self.questions.asks(&arguments) {
            arguments = self.questions.complete(cx, &self.tool.name, arguments).await?;
            self.check(&arguments)?;
        }
        let known = self.once.as_ref().map(|once| once.find(cx.principal(), &arguments)).transpose()?;
        if let Some(known) = known.flatten() {
            return known.ended().await;
        }
        if self.questions.confirm {
            self.questions.confirm(cx, &self.tool.name, &self.plan(&arguments)?.to_string()).await?;
        }
        if let Action::Worker(worker) = &self.action {
            return worker.call(cx, &arguments, &self.running).await;
        }
        let turn =
            turn(&format!("`{}`", self.tool.name), async { Ok(self.running.acquire().await?) }).await?;
        let Some(once) = &self.once else { return self.act(cx, &arguments).await };
        // What would be refused does not begin.
        self.plan(&arguments)?;
        match once.begin(cx.principal(), &arguments)? {
            Err(known) => {
                drop(turn);
                known.ended().await
            }
            Ok(new) => {
                let ended = self.act(cx, &arguments).await;
                new.end(&ended);
                ended
            }
        }
    }

    async fn act(&self, cx: &Cx, arguments: &JsonObject) -> Result<CallToolResult, ToolError> {
        match &self.action {
            Action::Command(command) => command.call(cx, &self.tool.name, arguments).await,
            Action::Request(request) => request.call(arguments).await,
            Action::Worker(worker) => worker.call(cx, arguments, &self.running).await,
        }
    }

    /// Checks arguments as a call does.
    fn check(&self, arguments: &JsonObject) -> Result<(), CallFault> {
        check(&Value::Object((*self.tool.input_schema).clone()), arguments)
    }

    fn plan(&self, arguments: &JsonObject) -> Result<CallPlan, CallFault> {
        match &self.action {
            Action::Command(command) => command.plan(arguments).map(CallPlan::Command),
            Action::Worker(worker) => worker.plan(arguments).map(CallPlan::Worker),
            Action::Request(request) => request.plan(arguments).map(CallPlan::Request),
        }
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
    let mut tool = Tool::new(name, entry.input_schema.clone().unwrap_or_else(|| input_schema(arguments)));
    tool.title.clone_from(&entry.title);
    tool.description.clone_from(&entry.description);
    tool.output_schema = entry.output_schema.clone().map(Into::into);
    let mut hints = ToolAnnotations::default();
    hints.read_only_hint = entry.read_only.then_some(true);
    hints.destructive_hint = entry.destructive;
    hints.idempotent_hint = entry.idempotent.then_some(true);
    hints.open_world_hint = entry.open_world;
    tool.execution = entry.task.then(|| {
        let mut execution = ToolExecution::default();
        execution.task_support = Some(TaskSupport::Optional);
        execution
    });
    tool.annotations = (hints != ToolAnnotations::default()).then_some(hints);
    tool
}

#[cfg(test)]
mod tests {
    use pintle::{Client, Server};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_has_waited_for_others_does_not_begin() {
        let entries = serde_json::from_str(r#"{"a": {"command": ["touch", "begun"], "max_running": 1}}"#);
        let tools = ServedTools::new(&entries.unwrap(), Path::new("/no/such/folder")).unwrap();
        let other = tools.0[0].running.acquire().await.unwrap();
        let server = tools.routes().into_iter().fold(Server::new("served", "1"), Server::tool);
        let client = Client::new("test", "1").connect(server.in_process().unwrap()).await.unwrap();
        let late = client.call("a").timeout(2 * QUEUE).await.unwrap().text();
        assert_eq!(late, "other calls of `a` have run for 60s: call again later");
        drop(other);
        let begun = format!("{:?}", client.call_tool("a", ()).await);
        assert!(begun.contains("no such directory"), "{begun}");
    }
}
