use std::{any::Any, borrow::Cow, error::Error, fmt};

use pintle_proto::{inputs::AskError, server::Outcome};
use pintle_types::{
    RpcError,
    schema::{CallToolResult, ContentBlock, TextContent},
};

/// Why a tool did not do its work.
///
/// Any [`std::error::Error`] turns into one with `?` and is told to the model as text. Like `anyhow::Error`, and for the
/// same reason, it is not itself an `Error`.
///
/// ```
/// use pintle::server::ToolError;
///
/// fn parse(text: &str) -> Result<u16, ToolError> {
///     if text.is_empty() {
///         return Err(ToolError::new("`port` is empty: give a number from 1 to 65535"));
///     }
///     Ok(text.parse()?)
/// }
/// ```
#[derive(Debug)]
pub struct ToolError(Repr);

#[derive(Debug)]
enum Repr {
    Told(Cow<'static, str>),
    Failed(RpcError),
}

impl ToolError {
    /// Something the model should read, and perhaps mend.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Repr::Told(text.into()))
    }

    /// Fails the request itself. For faults of the protocol, not of the tool.
    pub fn protocol(error: RpcError) -> Self {
        Self(Repr::Failed(error))
    }

    pub(crate) fn outcome(self) -> Result<CallToolResult, Outcome> {
        match self.0 {
            Repr::Failed(error) => Err(Outcome::Failed(error)),
            Repr::Told(text) => {
                let mut result = CallToolResult::new(vec![ContentBlock::Text(TextContent::new(text))]);
                result.is_error = Some(true);
                Ok(result)
            }
        }
    }
}

impl<E: Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        if let Some(error) = any.downcast_ref::<RpcError>() {
            return Self::protocol(error.clone());
        }
        match any.downcast_ref::<AskError>() {
            // What the client refused is news for the model; the rest is the protocol's.
            Some(AskError::Refused(said)) => Self::new(said.message.to_string()),
            Some(error) => Self::protocol(error.clone().into()),
            None => Self::new(error.to_string()),
        }
    }
}

/// Why a prompt, a resource or a completion could not be had.
///
/// Any [`std::error::Error`] turns into one with `?`; its text goes to the client.
///
/// ```
/// use pintle::server::RequestError;
///
/// fn line(text: &str, number: &str) -> Result<String, RequestError> {
///     let number: usize = number.parse()?;
///     if number == 0 {
///         return Err(RequestError::bad_request("lines are counted from 1"));
///     }
///     text.lines().nth(number - 1).map(str::to_owned).ok_or_else(RequestError::not_found)
/// }
/// ```
#[derive(Debug)]
pub struct RequestError(Reason);

#[derive(Debug)]
enum Reason {
    NotFound,
    Failed(RpcError),
}

impl RequestError {
    /// Something went wrong on this side.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Reason::Failed(RpcError::internal(text)))
    }

    /// What was asked for does not make sense.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Reason::Failed(RpcError::invalid_params(text)))
    }

    /// There is no such resource.
    pub fn not_found() -> Self {
        Self(Reason::NotFound)
    }

    /// Fails the request with this error.
    pub fn protocol(error: RpcError) -> Self {
        Self(Reason::Failed(error))
    }

    pub(crate) fn outcome(self, uri: Option<&str>) -> Outcome {
        match (self.0, uri) {
            (Reason::Failed(error), _) => Outcome::Failed(error),
            (Reason::NotFound, Some(uri)) => Outcome::NotFound { uri: uri.to_owned() },
            (Reason::NotFound, None) => Outcome::Failed(RpcError::invalid_params("not found")),
        }
    }
}

impl<E: Error + 'static> From<E> for RequestError {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        if let Some(error) = any.downcast_ref::<RpcError>() {
            return Self::protocol(error.clone());
        }
        match any.downcast_ref::<AskError>() {
            Some(error) => Self::protocol(error.clone().into()),
            None => Self::new(error.to_string()),
        }
    }
}

/// What a handler may fail with: whatever becomes its kind of error.
///
/// Implemented for all of that; it is here for what the compiler says of the rest.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a handler",
    note = "return `{E}`: `Err({E}::new(\"what went wrong\"))`",
    note = "or any `std::error::Error`; `?` makes a `{E}` of it"
)]
pub trait HandlerError<E>: Into<E> {}

#[diagnostic::do_not_recommend]
impl<T: Into<E>, E> HandlerError<E> for T {}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Told(text) => f.write_str(text),
            Repr::Failed(error) => error.fmt(f),
        }
    }
}
