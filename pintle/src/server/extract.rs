use std::any::{TypeId, type_name};

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RpcError, schema::Tool};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Cx, FromCall, dispatch, place};

/// A tool in the making: its handler's arguments and result say what it takes and gives.
#[derive(Debug)]
pub struct Description<'a> {
    pub(crate) tool: &'a mut Tool,
    pub(crate) faults: &'a mut Vec<String>,
    pub(crate) needs: &'a mut Vec<Need>,
    /// How many arguments have described the tool's own arguments.
    pub(crate) described: &'a mut usize,
}

/// A value that a handler takes from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) id: TypeId,
    pub(crate) name: &'static str,
}

impl Description<'_> {
    /// The tool takes an object of this type.
    pub(crate) fn takes<T: JsonSchema>(&mut self) {
        *self.described += 1;
        if *self.described > 1 {
            self.faults
                .push(format!("`{}` takes `Args` twice: put all fields into one struct", self.tool.name));
        }
        match schema_of::<T>(false) {
            Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
                self.tool.input_schema = with_properties(schema);
            }
            _ => self.faults.push(format!(
                "`{}` takes `Args<{}>`, which is no JSON object: use a struct with named fields",
                self.tool.name,
                T::schema_name()
            )),
        }
    }

    /// The tool gives a value of this type.
    pub(crate) fn gives<T: JsonSchema>(&mut self) {
        if let Value::Object(schema) = schema_of::<T>(true) {
            self.tool.output_schema = Some(schema);
        }
    }

    fn needs<T: 'static>(&mut self) {
        self.needs.push(Need { id: TypeId::of::<T>(), name: type_name::<T>() });
    }
}

/// The schema of a type as it is read, or as it is written: a field with a default is optional only for a reader.
pub(crate) fn schema_of<T: JsonSchema>(written: bool) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    let settings = if written { settings.for_serialize() } else { settings };
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Some hosts refuse a schema without `properties`.
fn with_properties(mut schema: JsonObject) -> JsonObject {
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// The arguments of a tool call, as a type. Its schema is the tool's input schema.
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

impl<T: DeserializeOwned + JsonSchema + Send> FromCall for Args<T> {
    fn describe(description: &mut Description<'_>) {
        description.takes::<T>();
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
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
    let said = cx.tool().and_then(|called| called.route.check.explain(text));
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

/// Something of the server's own, given to it with [`Server::with_state`](super::Server::with_state).
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
