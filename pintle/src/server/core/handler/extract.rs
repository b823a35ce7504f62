use std::{
    any::{TypeId, type_name},
    sync::Arc,
};

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RpcError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::server::{
    Cx, FromCall, HttpHead,
    schema::{
        read_error,
        type_schema::{self, TypeSchema},
    },
};

/// The description of a tool, prompt or resource, completed by the types of its handler's arguments and result.
#[derive(Debug)]
pub struct Description<'a> {
    kind: HandlerKind,
    name: &'a str,
    /// The schema of the arguments, or of a template's variables.
    pub(crate) input: Option<Arc<TypeSchema>>,
    /// The schema of a tool's structured result.
    pub(crate) output: Option<Arc<JsonObject>>,
    pub(crate) faults: Vec<String>,
    pub(crate) needs: Vec<Need>,
    /// The arguments whose data the record of a call does not have.
    pub(crate) unrecorded: Vec<String>,
}

/// The kind of entry that a handler belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HandlerKind {
    Tool,
    Prompt,
    Resource,
    Template,
    /// The completer of an argument.
    Completer,
}

impl HandlerKind {
    /// Returns the name of the kind for messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
            Self::Completer => "completer of",
        }
    }
}

/// A type of state that a handler takes from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

impl<'a> Description<'a> {
    pub(crate) fn new(kind: HandlerKind, name: &'a str) -> Self {
        Self {
            kind,
            name,
            input: None,
            output: None,
            faults: Vec::new(),
            needs: Vec::new(),
            unrecorded: Vec::new(),
        }
    }

    /// Declares that an argument takes data of the request that the record of a call does not have, so that the handler cannot run
    /// again in another process: see [`ToolRoute::resumable`](crate::server::ToolRoute::resumable). `argument` names it for people.
    ///
    /// [`Extension`] and [`HttpHead`] do. A [`FromCall`] of your own that reads [`Cx::extensions`] or [`Cx::http`] has to.
    pub fn unrecorded(&mut self, argument: impl Into<String>) {
        self.unrecorded.push(argument.into());
    }

    /// Sets the input schema to that of this type, which has to be an object.
    fn takes<T: DeserializeOwned + JsonSchema + 'static>(&mut self) {
        if !self.belongs("Args", &[HandlerKind::Tool, HandlerKind::Prompt]) {
            return;
        }
        self.once("Args");
        match TypeSchema::of::<T>() {
            Some(schema) => self.input = Some(schema),
            None => self.faults.push(format!(
                "`{}` takes `Args<{}>`, which is not a JSON object: use a struct with named fields",
                self.name,
                T::schema_name()
            )),
        }
    }

    /// Sets the schema of the template's variables to that of this type.
    pub(crate) fn takes_variables<T: JsonSchema>(&mut self) {
        if self.belongs("Vars", &[HandlerKind::Template]) {
            self.once("Vars");
            self.input = Some(TypeSchema::of_variables::<T>());
        }
    }

    /// Returns whether a handler of this kind can have such an argument, and records a fault if not.
    pub(crate) fn belongs(&mut self, argument: &str, kinds: &[HandlerKind]) -> bool {
        let (kind, name) = (self.kind.word(), self.name);
        if !kinds.contains(&self.kind) {
            let instead = match self.kind {
                HandlerKind::Tool | HandlerKind::Prompt => "take `Args<T>`",
                HandlerKind::Resource => "give it a URI with variables, by `template`, or take `Cx`",
                HandlerKind::Template => "take its variables, as `Vars<T>`",
                HandlerKind::Completer => "take `Partial`, `State<S>` or `Cx`",
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

    /// Sets the output schema to that of this type.
    pub(crate) fn gives<T: JsonSchema>(&mut self) {
        self.output = type_schema::written::<T>();
    }

    fn needs<T: 'static>(&mut self) {
        self.needs.push(Need { id: TypeId::of::<T>(), name: type_name::<T>() });
    }
}

/// The arguments of a tool or a prompt, decoded into a struct with named fields.
///
/// For a tool, the schema of the struct is the input schema. For a prompt, the fields are its arguments, described by their
/// doc comments; they are sent as text, so a field is a `String`, a number, a `bool`, an enum, or an `Option` of one. A field
/// that is an `Option` or has a default may be omitted; the values of an enum are completed.
///
/// The schema of a type is generated once in a process and shared by all handlers that take it.
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
#[expect(clippy::exhaustive_structs, reason = "destructured in argument lists")]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn describe(description: &mut Description<'_>) {
        description.takes::<T>();
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        if let Some(texts) = cx.texts() {
            return texts.decode().map(Self);
        }
        let text = cx.arguments();
        let read = match text.len() < LONG {
            true => serde_json::from_str(text),
            false => cx.decode_long_arguments(text),
        };
        let read = read.or_else(|error| match whole_numbers(text) {
            Some(text) => serde_json::from_str(&text).map_err(|_| error),
            None => Err(error),
        });
        read.map(Self).map_err(|error| undecodable(cx, text, &error))
    }
}

/// The length in bytes of arguments that are long.
const LONG: usize = 1024;

/// Returns the outcome for arguments that could not be decoded.
fn undecodable(cx: &Cx, text: &str, error: &serde_json::Error) -> Outcome {
    // The schema gives a better message: what was expected, and perhaps what was meant.
    let message = cx.tool().and_then(|called| called.tool.explain_arguments(text));
    Outcome::BadArguments(message.unwrap_or_else(|| read_error::describe(text, error)))
}

/// Returns the text with `3` in place of `3.0`, if it contains such a number: both are integers for JSON Schema, but only
/// the first is one for serde.
fn whole_numbers(text: &str) -> Option<String> {
    fn normalize(value: &mut Value) -> bool {
        match value {
            Value::Number(number) => {
                // Beyond 53 bits it is not certain which integer was meant.
                let whole = number.as_f64().filter(|x| number.is_f64() && x.fract() == 0.0 && x.abs() < 9e15);
                whole.inspect(|whole| *value = Value::from(*whole as i64)).is_some()
            }
            Value::Array(items) => items.iter_mut().map(normalize).fold(false, |one, other| one | other),
            Value::Object(members) => {
                members.values_mut().map(normalize).fold(false, |one, other| one | other)
            }
            _ => false,
        }
    }
    let mut value = serde_json::from_str(text).ok()?;
    normalize(&mut value).then(|| value.to_string())
}

/// A value of the server, set with [`Server::with_state`](crate::server::Server::with_state).
///
/// The value is cloned for each call, and calls run concurrently: put mutable state behind an `Arc` and a lock. A handler
/// whose state the server lacks is an error when the server starts.
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
#[expect(clippy::exhaustive_structs, reason = "destructured in argument lists")]
pub struct State<S>(pub S);

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    fn describe(description: &mut Description<'_>) {
        description.needs::<S>();
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        let own = &cx.snapshot().own;
        own.get::<S>().cloned().map(Self).ok_or_else(|| {
            tracing::error!(
                state = type_name::<S>(),
                "the server has no state of the type that a handler takes"
            );
            Outcome::Failed(RpcError::internal("the server is misconfigured; see its log"))
        })
    }
}

/// An extension of the request, added by a layer: for example the caller's identity or address.
///
/// A request without this extension is refused; take `Option<Extension<T>>` where it may be missing.
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
#[expect(clippy::exhaustive_structs, reason = "destructured in argument lists")]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for Extension<T> {
    fn describe(description: &mut Description<'_>) {
        description.unrecorded(format!("Extension<{}>", type_name::<T>()));
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.extensions().get::<T>().cloned().map(Self).ok_or_else(|| {
            tracing::error!(
                extension = type_name::<T>(),
                "the request has no extension of the type that a handler takes"
            );
            Outcome::Failed(RpcError::internal("the server is misconfigured; see its log"))
        })
    }
}

/// An extension of the request, or `None` if it has none of this type.
impl<T: Clone + Send + Sync + 'static> FromCall for Option<Extension<T>> {
    fn describe(description: &mut Description<'_>) {
        Extension::<T>::describe(description);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        Ok(cx.extensions().get::<T>().cloned().map(Extension))
    }
}

impl FromCall for HttpHead {
    fn describe(description: &mut Description<'_>) {
        description.unrecorded("HttpHead");
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.http().cloned().ok_or_else(|| {
            Outcome::Failed(RpcError::internal("this needs an HTTP request: call it over HTTP"))
        })
    }
}

/// The head of the HTTP request, or `None` if the call came over another transport.
impl FromCall for Option<HttpHead> {
    fn describe(description: &mut Description<'_>) {
        HttpHead::describe(description);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        Ok(cx.http().cloned())
    }
}
