use std::{
    any::{TypeId, type_name},
    sync::Arc,
};

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RpcError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    place,
    schema::type_schema::{self, TypeSchema},
};
use crate::server::{Cx, FromCall, call::dispatch};

/// A tool, prompt or resource in the making: its handler's arguments and result say what it takes and gives.
#[derive(Debug)]
pub struct Description<'a> {
    kind: Kind,
    name: &'a str,
    /// The schema of the arguments, or of a template's variables.
    pub(crate) input: Option<Arc<TypeSchema>>,
    /// The schema of a tool's structured result.
    pub(crate) output: Option<Arc<JsonObject>>,
    pub(crate) faults: Vec<String>,
    pub(crate) needs: Vec<Need>,
}

/// What a handler is the handler of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Kind {
    /// In a message, before its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }
}

/// A value that a handler takes from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

impl<'a> Description<'a> {
    pub(crate) fn new(kind: Kind, name: &'a str) -> Self {
        Self { kind, name, input: None, output: None, faults: Vec::new(), needs: Vec::new() }
    }

    /// It takes an object of this type as its arguments.
    fn takes<T: DeserializeOwned + JsonSchema + 'static>(&mut self) {
        if !self.belongs("Args", &[Kind::Tool, Kind::Prompt]) {
            return;
        }
        self.once("Args");
        match TypeSchema::of::<T>() {
            Some(schema) => self.input = Some(schema),
            None => self.faults.push(format!(
                "`{}` takes `Args<{}>`, which is no JSON object: use a struct with named fields",
                self.name,
                T::schema_name()
            )),
        }
    }

    /// It takes the variables of its template as this type.
    pub(crate) fn takes_variables<T: JsonSchema>(&mut self) {
        if self.belongs("Vars", &[Kind::Template]) {
            self.once("Vars");
            self.input = Some(TypeSchema::of_variables::<T>());
        }
    }

    /// Whether a handler of this kind can have such an argument.
    pub(crate) fn belongs(&mut self, argument: &str, kinds: &[Kind]) -> bool {
        let (kind, name) = (self.kind.word(), self.name);
        if !kinds.contains(&self.kind) {
            let instead = match self.kind {
                Kind::Tool | Kind::Prompt => "take `Args<T>`",
                Kind::Resource => "give it a URI with variables, by `template`, or take `Cx`",
                Kind::Template => "take its variables, as `Vars<T>`",
            };
            self.faults.push(format!("the {kind} `{name}` has nothing for `{argument}`: {instead}"));
            return false;
        }
        true
    }

    fn once(&mut self, argument: &str) {
        if self.input.is_some() {
            let name = self.name;
            self.faults.push(format!("`{name}` takes `{argument}` twice: put all fields into one struct"));
        }
    }

    /// The tool gives a value of this type.
    pub(crate) fn gives<T: JsonSchema>(&mut self) {
        self.output = type_schema::written::<T>();
    }

    fn needs<T: 'static>(&mut self) {
        self.needs.push(Need { id: TypeId::of::<T>(), name: type_name::<T>() });
    }
}

/// The arguments of a tool or a prompt, as a type: a struct with named fields.
///
/// Of a tool its schema is the input schema. Of a prompt its fields are the arguments, described by their docs; they
/// come as texts, so a field is a `String`, a number, a `bool`, an enum, or an `Option` of one. A field that is an
/// `Option` or has a default need not be given; the values of an enum are completed.
///
/// The schema of a type is made once in a process, and shared by all that take it.
///
/// ```
/// use pintle::server::{Args, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     /// The second one.
///     b: i64,
/// }
///
/// let add = tool("add", |Args(Add { a, b })| async move { (a + b).to_string() });
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument lists")]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn describe(description: &mut Description<'_>) {
        description.takes::<T>();
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        if let Some(given) = cx.given() {
            return given.decode().map(Self);
        }
        let text = dispatch::arguments(cx);
        let read = serde_json::from_str(text);
        let read = read.or_else(|error| match whole_numbers(text) {
            Some(text) => serde_json::from_str(&text).map_err(|_| error),
            None => Err(error),
        });
        read.map(Self).map_err(|error| unread(cx, text, &error))
    }
}

/// What is told of arguments that could not be read.
fn unread(cx: &Cx, text: &str, error: &serde_json::Error) -> Outcome {
    // The schema finds better words: what was expected, and perhaps what was meant.
    let said = cx.tool().and_then(|called| called.route.ready.check.explain(text));
    Outcome::BadArguments(said.unwrap_or_else(|| place::told(text, error)))
}

/// The same text with `3` for `3.0`, if there is such a number: for JSON Schema both are integers, for serde only one.
fn whole_numbers(text: &str) -> Option<String> {
    fn mend(value: &mut Value) -> bool {
        match value {
            Value::Number(number) => {
                // Beyond 53 bits it is not certain which integer was meant.
                let whole = number.as_f64().filter(|x| number.is_f64() && x.fract() == 0.0 && x.abs() < 9e15);
                whole.inspect(|whole| *value = Value::from(*whole as i64)).is_some()
            }
            Value::Array(items) => items.iter_mut().map(mend).fold(false, |one, other| one | other),
            Value::Object(members) => members.values_mut().map(mend).fold(false, |one, other| one | other),
            _ => false,
        }
    }
    let mut value = serde_json::from_str(text).ok()?;
    mend(&mut value).then(|| value.to_string())
}

/// Something of the server's own, given to it with [`Server::with_state`](crate::server::Server::with_state).
///
/// It is cloned for each call, and calls run at the same time: what changes is behind an `Arc` and a lock. A handler
/// whose state the server lacks is found when it starts.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use pintle::{Server, server::{State, tool}};
///
/// async fn count(State(counter): State<Arc<AtomicU64>>) -> u64 {
///     counter.fetch_add(1, Ordering::Relaxed) + 1
/// }
///
/// let server = Server::new("counter", "1.0.0").tool(tool("count", count));
/// assert!(server.check().unwrap_err().to_string().contains("with_state"));
/// let server = server.with_state(Arc::new(AtomicU64::new(0)));
/// assert!(server.check().is_ok());
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument lists")]
pub struct State<S>(pub S);

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    fn describe(description: &mut Description<'_>) {
        description.needs::<S>();
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        let own = &cx.state().own;
        own.get::<S>().cloned().map(Self).ok_or_else(|| {
            tracing::error!(wanted = type_name::<S>(), "a handler wants state that the server does not have");
            Outcome::Failed(RpcError::internal("the server is not set up: see its log"))
        })
    }
}

/// Something that a layer below left with the request: who the caller is, its headers, its address.
///
/// A request without it is refused; take `Option<Extension<T>>` where it may be missing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// use pintle::{Server, server::{Caller, Extension, tool}, transport::memory};
///
/// #[derive(Clone)]
/// struct Desk(u32);
///
/// async fn whose(Extension(Desk(number)): Extension<Desk>) -> String {
///     format!("that of desk {number}")
/// }
///
/// let server = Server::new("office", "1.0.0").tool(tool("whose", whose));
/// let (ours, theirs) = memory();
/// let serving = server.serve_to(ours, Caller::new().with(Desk(7)))?;
/// # #[cfg(feature = "client")] {
/// let office = pintle::Client::new("demo", "0.1.0").connect(theirs).await?;
/// let call = office.call_tool("whose", ()).await?;
/// assert_eq!(call.text(), "that of desk 7");
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument lists")]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for Extension<T> {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.extensions().get::<T>().cloned().map(Self).ok_or_else(|| {
            tracing::error!(
                wanted = type_name::<T>(),
                "a handler wants an extension that the request does not carry"
            );
            Outcome::Failed(RpcError::internal("the server is not set up: see its log"))
        })
    }
}

/// The same, if it is there.
impl<T: Clone + Send + Sync + 'static> FromCall for Option<Extension<T>> {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        Ok(cx.extensions().get::<T>().cloned().map(Extension))
    }
}
