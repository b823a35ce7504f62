use std::{
    mem,
    sync::{Arc, LazyLock},
};

use pintle_proto::http::HeaderParams;
use pintle_types::{
    JsonObject,
    schema::{CallToolResult, TaskSupport, Tool, ToolAnnotations},
};
use serde_json::Value;

use super::{
    completion::Completers,
    options::{RouteOptions, completion_methods, name_methods, route_methods},
};
use crate::{
    ToolTraits,
    layer::Handling,
    server::{
        Cx, Description, Handler, IntoToolResult, Next, SchemaPart,
        core::handler::{extract::HandlerKind, tool_future::ToolFuture},
        schema::{
            type_schema::{Ready, TypeSchema},
            validation::{ToolSchemas, Validation},
        },
    },
    tool_traits,
};

/// A tool and its handler, to be added to a server.
///
/// ```
/// use pintle::server::{Arguments, tool};
///
/// let echo = tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() })
///     .description("Returns its argument.")
///     .read_only();
/// ```
#[derive(Clone)]
pub struct ToolRoute {
    pub(crate) tool: Tool,
    pub(crate) options: RouteOptions,
    pub(crate) completers: Completers,
    /// The schema of the type that the handler takes, unless `input_schema` replaced it.
    typed: Option<Arc<TypeSchema>>,
    /// Whether the author asked for more than the type does.
    pub(crate) stricter: bool,
    /// Whether the output schema is that of the type that the handler gives, and asks for no more.
    pub(crate) typed_output: bool,
    /// Whether a property has a default that the type does not know.
    pub(crate) defaults: bool,
    /// Whether neither arguments nor results are validated.
    unvalidated: bool,
    /// Whether a task of this tool runs again after the end of its process.
    resumable: bool,
    /// The arguments of the handler whose data the record of a call does not have.
    unrecorded: Vec<String>,
    /// Computed when the tool is added.
    pub(crate) ready: Ready,
}

/// Creates a tool from an async function. Its schemas are those of the function's [`Args`](crate::server::Args) and result.
///
/// ```
/// use pintle::server::{Args, Server, State, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     /// Whom to greet.
///     name: String,
/// }
///
/// async fn greet(State(hello): State<&'static str>, Args(Greet { name }): Args<Greet>) -> String {
///     format!("{hello}, {name}!")
/// }
///
/// let server = Server::new("greeter", "1.0.0")
///     .with_state("Hello")
///     .tool(tool("greet", greet).title("Greet").description("Greet somebody.").read_only());
/// # server.check().unwrap();
/// ```
pub fn tool<M: 'static, H>(name: impl Into<String>, handler: H) -> ToolRoute
where
    H: Handler<M, Output: IntoToolResult>,
{
    let name = name.into();
    let mut description = Description::new(HandlerKind::Tool, &name);
    H::describe(&mut description);
    H::Output::describe(&mut description);
    let Description { input, output, faults, needs, unrecorded, .. } = description;
    let schema = input.as_ref().map_or(&*NOTHING, |typed| &typed.schema);
    let mut tool = Tool::new(name, schema.clone());
    let typed_output = output.is_some();
    tool.output_schema = output;
    let options = RouteOptions::new(next(handler), faults, needs);
    ToolRoute { typed: input, typed_output, unrecorded, ..ToolRoute::new(tool, options) }
}

/// Wraps a handler so that it returns the outcome of a call.
fn next<M: 'static, H: Handler<M, Output: IntoToolResult>>(handler: H) -> Next {
    let handler = Arc::new(handler);
    Next::new(move |cx: Cx| {
        let running = handler.call(cx.clone());
        Handling::new(ToolFuture::new(running, cx))
    })
}

/// The schema of a tool that takes no arguments.
static NOTHING: LazyLock<Arc<JsonObject>> = LazyLock::new(|| {
    // Always both: some hosts refuse a schema without `properties`.
    let properties = ("properties".to_owned(), Value::Object(JsonObject::new()));
    Arc::new([("type".to_owned(), "object".into()), properties].into_iter().collect())
});

route_methods!(ToolRoute, Tool, tool.name: Tool, Tools, tools, prepare: ToolRoute::prepare);
name_methods!(ToolRoute, tool);
completion_methods!(ToolRoute, tool.name, "argument");

impl ToolRoute {
    /// Creates a tool from its definition: clients see every member of it as it is, unknown members and explicit `false`
    /// hints included.
    ///
    /// The handler takes the arguments as they came ([`Arguments`](crate::server::Arguments), or [`Cx`]), or decodes them
    /// ([`Args`](crate::server::Args)); its types do not change the definition. Arguments and results are validated against the
    /// schemas of the definition; [`unvalidated`](Self::unvalidated) leaves that to somebody else. A handler that returns an
    /// [`Outcome`](crate::server::Outcome) decides the answer as a whole.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pintle::{Server, server::{Arguments, ToolRoute}, types::schema::Tool};
    ///
    /// let tool: Tool = serde_json::from_str(r#"{
    ///     "name": "echo",
    ///     "description": "Say it again.",
    ///     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ///     "annotations": {"readOnlyHint": false, "idempotentHint": false},
    ///     "com.example/price": 3
    /// }"#)?;
    /// let echo = |Arguments(arguments)| async move { arguments.as_str().to_owned() };
    /// let server = Server::new("parrot", "1.0.0").tool(ToolRoute::of(tool.clone(), echo));
    /// # #[cfg(feature = "client")] {
    /// let parrot = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
    /// assert_eq!(parrot.tools().await?, [tool]);
    /// assert!(parrot.call_tool("echo", ()).await?.text().contains("text"), "the arguments are validated");
    /// # }
    /// # Ok(()) }
    /// ```
    pub fn of<M: 'static, H>(tool: Tool, handler: H) -> Self
    where
        H: Handler<M, Output: IntoToolResult>,
    {
        let mut description = Description::new(HandlerKind::Tool, &tool.name);
        H::describe(&mut description);
        let Description { mut faults, needs, unrecorded, .. } = description;
        if tool.input_schema.get("type").is_none_or(|kind| kind != "object") {
            faults.push(not_an_object(&tool.name));
        }
        let options = RouteOptions::new(next(handler), faults, needs);
        Self { unrecorded, ..Self::new(tool, options) }.agreeing()
    }

    fn new(tool: Tool, options: RouteOptions) -> Self {
        Self {
            tool,
            options,
            completers: Completers::default(),
            typed: None,
            stricter: false,
            typed_output: false,
            defaults: false,
            unvalidated: false,
            resumable: false,
            unrecorded: Vec::new(),
            ready: Ready::default(),
        }
    }

    /// Validates neither arguments nor results: the handler, or the server that it forwards to, does.
    ///
    /// Arguments that a handler takes as [`Args`](crate::server::Args) still have to have their type. Defaults of the schema are
    /// not filled in.
    #[must_use]
    pub fn unvalidated(mut self) -> Self {
        self.unvalidated = true;
        self
    }

    /// Refuses arguments that are not in the input schema. By default they are ignored, since some hosts add some.
    #[must_use]
    pub fn strict(self) -> Self {
        self.input(SchemaPart::deny_unknown)
    }

    /// Edits the input schema that the type of the arguments has.
    ///
    /// ```
    /// use pintle::server::{Args, tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Roll {
    ///     sides: u32,
    /// }
    ///
    /// let roll = tool("roll", |Args(Roll { sides })| async move { sides / 2 })
    ///     .input(|s| s.property("sides", |p| p.description("How many sides the die has.").minimum(2).default(6)));
    /// ```
    #[must_use]
    pub fn input(mut self, edit: impl FnOnce(SchemaPart) -> SchemaPart) -> Self {
        let schema = Arc::unwrap_or_clone(mem::take(&mut self.tool.input_schema));
        let (schema, edits) = edit(SchemaPart::root(schema)).finish();
        self.tool.input_schema = schema.into();
        self.stricter |= edits.stricter;
        self.defaults |= edits.defaults;
        self.note("input", edits.faults);
        self
    }

    /// Edits the output schema that the type of the structured result has.
    #[must_use]
    pub fn output(mut self, edit: impl FnOnce(SchemaPart) -> SchemaPart) -> Self {
        let Some(schema) = self.tool.output_schema.take() else {
            let name = &self.tool.name;
            self.options.faults.push(format!(
                "`{name}` has no output schema: return a `Json<T>`, or give a schema with `output_schema`"
            ));
            return self;
        };
        let (schema, edits) = edit(SchemaPart::root(Arc::unwrap_or_clone(schema))).finish();
        self.tool.output_schema = Some(schema.into());
        self.typed_output &= !edits.stricter;
        self.note("output", edits.faults);
        self
    }

    fn note(&mut self, which: &str, faults: Vec<String>) {
        let name = &self.tool.name;
        self.options
            .faults
            .extend(faults.into_iter().map(|fault| format!("the {which} schema of `{name}` {fault}")));
    }

    /// Replaces the input schema: a JSON value, or its text. It must be an object schema.
    ///
    /// ```
    /// use pintle::server::{Arguments, tool};
    ///
    /// let say = tool("say", |Arguments(arguments)| async move { arguments.as_str().to_owned() })
    ///     .input_schema(r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#);
    /// ```
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<Value>) -> Self {
        match self.read_schema("input", schema.into()) {
            Some(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
                self.tool.input_schema = schema.into();
                self.typed = None;
            }
            Some(_) => self.options.faults.push(not_an_object(&self.tool.name)),
            None => {}
        }
        self
    }

    /// Replaces the output schema, that of `structuredContent`: a JSON value, or its text.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Value>) -> Self {
        if let Some(schema) = self.read_schema("output", schema.into()) {
            self.tool.output_schema = Some(schema.into());
            self.typed_output = false;
        }
        self
    }

    /// A schema is never a string, so a string is the text of one.
    fn read_schema(&mut self, which: &str, schema: Value) -> Option<JsonObject> {
        let schema = match &schema {
            Value::String(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
            _ => Ok(schema),
        };
        let fault = match schema {
            Ok(Value::Object(schema)) => return Some(schema),
            Ok(_) => "is not a JSON object".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        self.note(which, vec![fault]);
        None
    }

    /// Replaces all hints, for those that have no method of their own: a title, an explicit `false`, unknown members.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.tool.annotations = Some(annotations);
        self.agreeing()
    }

    /// Declares that the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.hints().read_only_hint = Some(true);
        self.agreeing()
    }

    /// Declares whether the tool may destroy something; `false` if it only adds.
    #[must_use]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.hints().destructive_hint = Some(destructive);
        self.agreeing()
    }

    /// Declares that a second call with the same arguments has no further effect.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.hints().idempotent_hint = Some(true);
        self
    }

    /// Declares whether the tool interacts with external systems; `false` if its domain is closed.
    #[must_use]
    pub fn open_world(mut self, open: bool) -> Self {
        self.hints().open_world_hint = Some(open);
        self
    }

    /// Declares whether calls of the tool may run as tasks: `optional`, `required` or `forbidden`, which is the default. The server needs
    /// `Tasks` of the crate `pintle-tasks`.
    ///
    /// A call of an optional one becomes a task if its client supports tasks and the handler does not complete at once.
    #[must_use]
    pub fn task(mut self, support: impl Into<TaskSupport>) -> Self {
        let support = support.into();
        if let TaskSupport::Other(word) = &support {
            self.options.faults.push(format!(
                "the tool `{}` cannot be a task as `{word}`: write `optional`, `required` or `forbidden`",
                self.tool.name
            ));
        }
        self.tool.execution.get_or_insert_default().task_support = Some(support);
        self
    }

    /// Declares that a task of this tool that was not done when its process ended runs again in another one: from the top, over the
    /// answers that it has and the values of its [`once`](crate::server::Cx::once) actions. Other tasks fail then. A call of a session over
    /// HTTP that is no task runs again too, if processes share the session (`Http::shared`) and its client resumes the stream at another
    /// one.
    ///
    /// What the handler does besides, it does again. What it takes from the request has to be in the record of the call: a handler that
    /// takes an [`Extension`](crate::server::Extension) or the [`HttpHead`](crate::server::HttpHead) is refused by
    /// [`Server::check`](crate::server::Server::check). The tasks have to be in a store that outlives the process.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError, tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Size { size: String }
    ///
    /// async fn order(cx: Cx) -> Result<String, ToolError> {
    ///     let size = cx.elicit::<Size>("size", "Which size?").await?.accepted().ok_or("Nothing was ordered.")?;
    ///     // Done once, also if the process ends here and another one goes on.
    ///     let number: u32 = cx.once("order", async { 4711 }).await?;
    ///     Ok(format!("Order {number}: {}", size.size))
    /// }
    ///
    /// let order = tool("order", order).task("optional").resumable();
    /// ```
    #[must_use]
    pub fn resumable(mut self) -> Self {
        self.resumable = true;
        self
    }

    /// Records a fault if the tool cannot be resumed as it is declared to be.
    fn check_resumable(&mut self) {
        if !self.resumable {
            return;
        }
        let name = &self.tool.name;
        let support = self.tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
        if !matches!(support, Some(TaskSupport::Optional | TaskSupport::Required)) {
            self.options
                .faults
                .push(format!("the tool `{name}` is resumable, but never a task: declare it with `task`"));
        }
        self.options.faults.extend(self.unrecorded.iter().map(|argument| {
            format!(
                "the tool `{name}` is resumable, but takes `{argument}`, which is not recorded: take it from the arguments or \
                 from `State<S>`, or do not declare the tool as resumable"
            )
        }));
    }

    /// Sets further traits of the tool.
    #[must_use]
    pub fn traits(mut self, traits: ToolTraits) -> Self {
        match serde_json::to_value(traits) {
            Ok(traits) => drop(self.tool.meta.get_or_insert_default().insert(tool_traits::KEY, traits)),
            Err(error) => self
                .options
                .faults
                .push(format!("the traits of `{}` cannot be printed: {error}", self.tool.name)),
        }
        self
    }

    /// Adds a tag to find the tool by.
    #[must_use]
    pub fn tag(self, tag: impl Into<String>) -> Self {
        let traits = ToolTraits::of(&self.tool).tag(tag);
        self.traits(traits)
    }

    /// Records a fault if hints contradict each other.
    fn agreeing(mut self) -> Self {
        let hints = self.tool.annotations.as_ref();
        if hints.is_some_and(|it| it.read_only_hint == Some(true) && it.destructive_hint == Some(true)) {
            let name = &self.tool.name;
            self.options.faults.push(format!(
                "the tool `{name}` is marked read-only and destructive: remove one of the hints"
            ));
        }
        self
    }

    /// Compiles the schemas, once.
    pub(super) fn prepare(&mut self) {
        let name = &self.tool.name;
        if !legal(name) {
            self.options.faults.push(format!(
                "`{name}` is not a tool's name: use 1 to 128 letters, digits, `_`, `-` and `.`"
            ));
        }
        self.check_resumable();
        let made = match &self.typed {
            // As the type has them: then so is what is made of them.
            Some(typed)
                if Arc::ptr_eq(&typed.schema, &self.tool.input_schema)
                    && self.tool.output_schema.is_none()
                    && !self.unvalidated =>
            {
                typed.ready(|| self.made())
            }
            _ => self.made(),
        };
        match made {
            Ok(ready) => self.ready = ready,
            Err(fault) => self.options.faults.push(fault),
        }
    }

    fn made(&self) -> Result<Ready, String> {
        let Self { tool, typed, stricter, typed_output, defaults, .. } = self;
        let schemas = ToolSchemas {
            name: &tool.name,
            input: &tool.input_schema,
            typed: typed.is_some(),
            stricter: *stricter,
            defaults: *defaults,
            output: tool.output_schema.as_ref(),
            typed_output: *typed_output,
        };
        let check = if self.unvalidated { Validation::default() } else { Validation::of(&schemas)? };
        let mirrored = HeaderParams::from_object_schema(&tool.input_schema)
            .map_err(|bad| format!("the input schema of `{}`: {bad}", tool.name))?;
        Ok(Ready { check, mirrored })
    }

    fn hints(&mut self) -> &mut ToolAnnotations {
        self.tool.annotations.get_or_insert_default()
    }
}

/// The fault of an input schema that does not describe an object.
fn not_an_object(name: &str) -> String {
    format!("the input schema of `{name}` is not an object schema: give it `\"type\":\"object\"`")
}

fn legal(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && name.bytes().all(fits)
}

impl ToolRoute {
    pub(crate) fn name(&self) -> &str {
        &self.tool.name
    }

    /// Returns whether a task of the tool runs again after the end of its process.
    pub(crate) fn is_resumable(&self) -> bool {
        self.resumable
    }

    pub(crate) fn has_output_schema(&self) -> bool {
        self.tool.output_schema.is_some()
    }

    /// Explains why arguments do not have the type that the handler takes.
    pub(crate) fn explain_arguments(&self, arguments: &str) -> Option<String> {
        self.ready.check.explain(arguments)
    }

    /// Checks a result against the output schema.
    pub(crate) fn check_result(&self, result: &CallToolResult) -> Result<(), String> {
        self.ready.check.check_result(result)
    }
}
