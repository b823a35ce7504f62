//! Handlers: async functions with extracted arguments, and what they return.

pub(crate) mod blocking;
pub(crate) mod error;
pub(crate) mod extract;
pub(crate) mod result_size;
pub(crate) mod state_map;
pub(crate) mod tool_future;
pub(crate) mod vars;

use std::future::Future;

use pintle_proto::server::Outcome;
use pintle_types::{
    RawObject, RpcError, plain_error,
    schema::{CallToolResult, ContentBlock, TextContent},
};
use schemars::JsonSchema;
use serde::Serialize;

use self::blocking::Blocking;
use crate::server::{Cx, Description, HandlerError, ToolError};

/// An async function that handles calls of a tool, gets of a prompt or reads of a resource.
///
/// It is implemented for functions and closures of up to six [`FromCall`] arguments. Implement it for a type of your own if
/// handlers are values, for example a tool that is built from configuration: [`describe`](Self::describe) delegates to the
/// arguments that [`call`](Self::call) extracts, and `M` is any type, such as `()`.
///
/// ```
/// use pintle::server::{Args, Cx, Description, FromCall, Handler, Outcome, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name {
///     name: String,
/// }
///
/// /// Greets in one language.
/// struct Greeter {
///     greeting: String,
/// }
///
/// impl Handler<()> for Greeter {
///     type Output = String;
///
///     fn describe(description: &mut Description<'_>) {
///         Args::<Name>::describe(description);
///     }
///
///     fn call(&self, cx: Cx) -> impl Future<Output = Result<String, Outcome>> + Send + 'static {
///         let greeting = self.greeting.clone();
///         async move {
///             let Args(Name { name }) = Args::from_call(&cx)?;
///             Ok(format!("{greeting}, {name}!"))
///         }
///     }
/// }
///
/// let hello = tool("hello", Greeter { greeting: "Hello".to_owned() });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an `async fn` whose arguments are `Args<T>`, `Vars<T>`, `State<S>`, `Extension<T>`, `Arguments` or `Cx`, and whose future is `Send`",
    note = "the `T` of `Args<T>` and `Vars<T>` has `#[derive(serde::Deserialize, schemars::JsonSchema)]`",
    note = "a closure is called for each call, at the same time too: clone what it captures before `async move`, which would move it out"
)]
pub trait Handler<M>: Send + Sync + 'static {
    /// The result: [`IntoToolResult`] for a tool, [`IntoPromptResult`](crate::server::IntoPromptResult) for a prompt,
    /// [`IntoResourceResult`](crate::server::IntoResourceResult) for a resource.
    type Output;

    /// Describes the handler's arguments, for the tool, prompt or resource that it belongs to.
    fn describe(description: &mut Description<'_>);

    /// Runs the handler.
    fn call(&self, cx: Cx) -> impl Future<Output = Result<Self::Output, Outcome>> + Send + 'static;
}

/// An argument of a handler that is extracted from the call.
///
/// Implement it for values that several handlers extract in the same way:
///
/// ```
/// use pintle::server::{Cx, FromCall, Outcome, tool};
///
/// /// The name of the client.
/// struct Name(String);
///
/// impl FromCall for Name {
///     fn from_call(cx: &Cx) -> Result<Self, Outcome> {
///         let info = cx.peer().info.as_ref();
///         Ok(Self(info.map_or("somebody".to_owned(), |info| info.name.clone())))
///     }
/// }
///
/// let hello = tool("hello", |Name(name): Name| async move { format!("Hello, {name}.") });
/// ```
///
/// With `#[pintle::tool]`, mark such a parameter with `#[extract]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    note = "handler arguments are `Args<T>`, `Vars<T>`, `State<S>`, `Extension<T>`, `HttpHead`, `Arguments` or `Cx`"
)]
pub trait FromCall: Sized + Send {
    /// Describes this argument, for the tool, prompt or resource of the handler. Default: it adds nothing.
    fn describe(_: &mut Description<'_>) {}

    /// Extracts the value from the call, or ends the call.
    fn from_call(cx: &Cx) -> Result<Self, Outcome>;
}

impl FromCall for Cx {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        Ok(cx.clone())
    }
}

/// The arguments of a tool or a prompt as a raw JSON object.
///
/// With the feature `validation`, omitted arguments that have a `default` in the tool's input schema are filled in.
///
/// ```
/// use pintle::server::{Arguments, tool};
///
/// let echo = tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() });
/// ```
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "destructured in argument lists")]
pub struct Arguments(pub RawObject);

impl FromCall for Arguments {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.arguments().parse().map(Self).map_err(|error| {
            Outcome::BadArguments(format!("`arguments` is not an object: {}", plain_error(&error)))
        })
    }
}

/// A value that a tool handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    note = "return a `String`, a number, a `Json<T>`, an `Image`, a `ContentBlock`, a `CallToolResult`, or a `Result` of one of them",
    note = "a struct, a list or a map is returned as `Json<{Self}>`: write `Json(value)`"
)]
pub trait IntoToolResult {
    /// Describes the result, for the tool of the handler. Default: it has no output schema.
    fn describe(_: &mut Description<'_>) {}

    /// Converts the value into the result, or into another outcome of the call.
    fn into_tool_result(self) -> Result<CallToolResult, Outcome>;

    /// Converts the value into the result of this tool: its name is logged with an error.
    #[doc(hidden)]
    fn into_result_of(self, _tool: &str) -> Result<CallToolResult, Outcome>
    where
        Self: Sized,
    {
        self.into_tool_result()
    }

    /// Returns the text if the result consists of one text and nothing else, which is then printed directly.
    #[doc(hidden)]
    fn into_text(self) -> Result<String, Self>
    where
        Self: Sized,
    {
        Err(self)
    }
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        Ok(self)
    }
}

/// An outcome is the answer as it is: neither validated nor limited in size. For handlers that pass on the result of another
/// server.
impl IntoToolResult for Outcome {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        Err(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        ContentBlock::Text(TextContent::new(self)).into_tool_result()
    }

    fn into_text(self) -> Result<String, Self> {
        Ok(self)
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        self.to_owned().into_tool_result()
    }

    fn into_text(self) -> Result<String, Self> {
        Ok(self.to_owned())
    }
}

/// A structured result. The tool's output schema is that of `T`; the result also contains the JSON as text, for clients
/// without support for structured results.
///
/// ```
/// use pintle::server::{Json, tool};
/// use schemars::JsonSchema;
/// use serde::Serialize;
///
/// #[derive(JsonSchema, Serialize)]
/// struct Weather {
///     celsius: f64,
/// }
///
/// let weather = tool("weather", || async { Json(Weather { celsius: 21.5 }) });
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "constructed by handlers")]
pub struct Json<T>(pub T);

/// A type that a tool may return as [`Json`]: any type with serde's `Serialize` and schemars' `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned as `Json`: derive `serde::Serialize` and `schemars::JsonSchema` for it",
    label = "no schema, or not serializable"
)]
pub trait JsonResult: Serialize + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> JsonResult for T {}

impl<T: JsonResult> IntoToolResult for Json<T> {
    fn describe(description: &mut Description<'_>) {
        description.gives::<T>();
    }

    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        let value = serde_json::to_value(&self.0).map_err(|error| {
            Outcome::Failed(RpcError::internal(format!("the result cannot be printed: {error}")))
        })?;
        let text = ContentBlock::Text(TextContent::new(value.to_string()));
        let mut result = CallToolResult::new(vec![text]);
        result.structured_content = Some(value);
        Ok(result)
    }
}

macro_rules! impl_text {
    ($($number:ty)*) => {$(
        impl IntoToolResult for $number {
            fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
                self.to_string().into_tool_result()
            }

            fn into_text(self) -> Result<String, Self> {
                Ok(self.to_string())
            }
        }
    )*};
}

impl_text!(bool char f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        Ok(CallToolResult::new(Vec::new()))
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        Ok(CallToolResult::new(vec![self]))
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        Ok(CallToolResult::new(self))
    }
}

impl<T: IntoToolResult, E: HandlerError<ToolError>> IntoToolResult for Result<T, E> {
    fn describe(description: &mut Description<'_>) {
        T::describe(description);
    }

    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => error.into().outcome(None),
        }
    }

    fn into_result_of(self, tool: &str) -> Result<CallToolResult, Outcome> {
        match self {
            Ok(value) => value.into_result_of(tool),
            Err(error) => error.into().outcome(Some(tool)),
        }
    }

    fn into_text(self) -> Result<String, Self> {
        match self {
            Ok(value) => value.into_text().map_err(Ok),
            Err(error) => Err(Err(error)),
        }
    }
}

macro_rules! impl_handler {
    ($($arg:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<F, Fut, R, $($arg),*> Handler<fn($($arg),*) -> R> for F
        where
            F: Fn($($arg),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            $($arg: FromCall,)*
        {
            type Output = R;

            #[allow(unused_variables, reason = "one shape for any number of arguments")]
            fn describe(description: &mut Description<'_>) {
                $($arg::describe(description);)*
            }

            #[allow(
                non_snake_case,
                unused_variables,
                clippy::redundant_closure_call,
                reason = "one shape for any number of arguments"
            )]
            fn call(&self, cx: Cx) -> impl Future<Output = Result<R, Outcome>> + Send + 'static {
                let started = (|| { $(let $arg = $arg::from_call(&cx)?;)* Ok(self($($arg),*)) })();
                async move { Ok(started?.await) }
            }
        }
    };
}

/// Implements [`Handler`] for synchronous functions that run on the blocking pool.
macro_rules! impl_blocking_handler {
    ($($arg:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<F, R, $($arg),*> Handler<Blocking<fn($($arg),*) -> R>> for Blocking<F>
        where
            F: Fn($($arg),*) -> R + Send + Sync + 'static,
            R: Send + 'static,
            $($arg: FromCall + 'static,)*
        {
            type Output = R;

            #[allow(unused_variables, reason = "one shape for any number of arguments")]
            fn describe(description: &mut Description<'_>) {
                $($arg::describe(description);)*
            }

            #[allow(
                non_snake_case,
                unused_variables,
                clippy::redundant_closure_call,
                reason = "one shape for any number of arguments"
            )]
            fn call(&self, cx: Cx) -> impl Future<Output = Result<R, Outcome>> + Send + 'static {
                let function = self.function();
                let started = (|| {
                    $(let $arg = $arg::from_call(&cx)?;)*
                    Ok(blocking::run(cx.clone(), move || function($($arg),*)))
                })();
                async move { Ok(started?.await) }
            }
        }
    };
}

macro_rules! impl_handlers {
    ($([$($arg:ident)*])*) => {
        $(impl_handler!($($arg)*); impl_blocking_handler!($($arg)*);)*
    };
}

impl_handlers!([] [A] [A B] [A B C] [A B C D] [A B C D E] [A B C D E G]);
