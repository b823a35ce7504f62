use std::{any::Any, borrow::Cow, error::Error, fmt};

use pintle_proto::{inputs::AskError, server::Outcome};
use pintle_types::{
    RpcError,
    schema::{CallToolResult, ContentBlock, TextContent},
};

/// An error of a tool handler.
///
/// Any [`std::error::Error`] converts into one with `?`; its text is returned to the model. Like `anyhow::Error`, and for
/// the same reason, this type does not implement `Error` itself.
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
    Message(Cow<'static, str>),
    Failed(RpcError),
}

impl ToolError {
    /// Creates an error result with a text for the model, which may correct its call.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Repr::Message(text.into()))
    }

    /// Creates a protocol error that fails the request itself, for faults that are not the tool's.
    pub fn protocol(error: RpcError) -> Self {
        Self(Repr::Failed(error))
    }

    pub(crate) fn outcome(self) -> Result<CallToolResult, Outcome> {
        match self.0 {
            Repr::Failed(error) => Err(Outcome::Failed(error)),
            Repr::Message(text) => {
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
            // The model is informed of a refusal by the client; other errors are those of the protocol.
            Some(AskError::Refused(refusal)) => Self::new(refusal.message.to_string()),
            Some(error) => Self::protocol(error.clone().into()),
            None => Self::new(error.to_string()),
        }
    }
}

/// An error of a prompt, resource or completion handler.
///
/// Any [`std::error::Error`] converts into one with `?`; its text is sent to the client.
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
    /// Creates an internal error.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Reason::Failed(RpcError::internal(text)))
    }

    /// Creates an error for an invalid request.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Reason::Failed(RpcError::invalid_params(text)))
    }

    /// Creates an error for a resource that does not exist.
    pub fn not_found() -> Self {
        Self(Reason::NotFound)
    }

    /// Creates an error that fails the request with this one.
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

/// An error type that a handler may return: any type that converts into `E`.
///
/// This is implemented for all such types; the trait exists for the compiler message about other types.
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
            Repr::Message(text) => f.write_str(text),
            Repr::Failed(error) => error.fmt(f),
        }
    }
}
