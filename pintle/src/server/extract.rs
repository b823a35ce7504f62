use std::any::{TypeId, type_name};

use pintle_proto::server::Outcome;
use pintle_types::{JsonObject, RpcError, schema::Tool};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Cx, FromCall, dispatch};

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
        serde_json::from_str(text).map(Self).map_err(|error| {
            // The schema finds better words: the place, what was expected, and perhaps what was meant.
            let name = cx.params().decode_member::<String>("name").ok().flatten().unwrap_or_default();
            let route = cx.state().catalogue.tools.get(&name);
            let said = route.and_then(|route| route.check.explain(text));
            Outcome::BadArguments(
                said.unwrap_or_else(|| {
                    format!("the arguments do not fit: {error}; see the tool's input schema")
                }),
            )
        })
    }
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
