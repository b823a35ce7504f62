use std::{borrow::Cow, error::Error, fmt, iter};

use pintle_proto::{inputs::AskError, server::Outcome};
use pintle_types::{
    RpcError,
    schema::{CallToolResult, ContentBlock, TextContent},
};

use crate::{error::BoxError, message_log::Redactor};

/// An error of a tool handler.
///
/// `?` converts every [`std::error::Error`] that is `Send + Sync`, every type that converts into
/// `Box<dyn Error + Send + Sync>` (`anyhow::Error`, `eyre::Report`), and texts. The model reads the error's own message
/// (its `Display`); the messages of its sources are logged and not sent, because they may name files, hosts and queries.
///
/// Like `anyhow::Error`, and for the same reason, this type does not implement `Error` itself.
///
/// ```
/// use pintle::server::ToolError;
///
/// fn parse(text: &str) -> Result<u16, ToolError> {
///     if text.is_empty() {
///         return Err(ToolError::new("`port` is empty: give a number from 1 to 65535"));
///     }
///     let port: u16 = text.parse()?;
///     if port < 1024 {
///         Err(format!("port {port} is reserved: give a number above 1023"))?;
///     }
///     Ok(port)
/// }
///
/// assert_eq!(parse("80").unwrap_err().to_string(), "port 80 is reserved: give a number above 1023");
/// ```
#[derive(Debug)]
pub struct ToolError(Repr);

#[derive(Debug)]
enum Repr {
    Message(Cow<'static, str>),
    Error(BoxError),
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

    /// Returns the result of a call that failed, and logs the sources of the error.
    pub(crate) fn outcome(self, tool: Option<&str>) -> Result<CallToolResult, Outcome> {
        let text = match self.0 {
            Repr::Failed(error) => return Err(Outcome::Failed(error)),
            Repr::Message(text) => text,
            Repr::Error(error) => {
                if let Some(sources) = sources(&*error) {
                    tracing::warn!(tool, %error, sources, "a tool failed");
                }
                error.to_string().into()
            }
        };
        let mut result = CallToolResult::new(vec![ContentBlock::Text(TextContent::new(text))]);
        result.is_error = Some(true);
        Ok(result)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error = error.into();
        if let Some(error) = error.downcast_ref::<RpcError>() {
            return Self::protocol(error.clone());
        }
        match error.downcast_ref::<AskError>() {
            // The model is informed of a refusal by the client; other errors are those of the protocol.
            Some(AskError::Refused(refusal)) => Self::new(refusal.message.to_string()),
            Some(error) => Self::protocol(error.clone().into()),
            None => Self(Repr::Error(error)),
        }
    }
}

/// Returns the messages of an error's sources, the outermost first; `None` if there are none.
fn sources(error: &(dyn Error + 'static)) -> Option<String> {
    /// The limit on the number of messages, should an error be its own source.
    const MAX_SOURCES: usize = 32;
    let chain = iter::successors(error.source(), |&source| source.source());
    let messages: Vec<String> = chain.take(MAX_SOURCES).map(ToString::to_string).collect();
    (!messages.is_empty()).then(|| messages.join(": "))
}

/// An error of a prompt, a resource, a completer or a custom method.
///
/// `?` converts the same types as for [`ToolError`]. The client receives the error's own message (its `Display`); the
/// messages of its sources are logged and not sent.
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
    Message(Cow<'static, str>),
    Error(BoxError),
    Failed(RpcError),
    /// The outcome of a handler that makes its own.
    Outcome(Box<Outcome>),
}

impl RequestError {
    /// Creates an internal error.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(Reason::Message(text.into()))
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

    /// Creates the error of a handler whose result is this outcome, whatever it is.
    pub(crate) fn other(outcome: Outcome) -> Self {
        Self(Reason::Outcome(Box::new(outcome)))
    }

    /// Returns the outcome of a request that failed, and logs the sources of the error. `uri` is that of a resource.
    pub(crate) fn outcome(self, method: &str, uri: Option<&str>) -> Outcome {
        Outcome::Failed(match (self.0, uri) {
            (Reason::NotFound, Some(uri)) => return Outcome::NotFound { uri: uri.to_owned() },
            (Reason::NotFound, None) => RpcError::invalid_params("not found"),
            (Reason::Outcome(outcome), _) => return *outcome,
            (Reason::Failed(error), _) => error,
            (Reason::Message(text), _) => RpcError::internal(text),
            (Reason::Error(error), _) => {
                if let Some(sources) = sources(&*error) {
                    let redactor = Redactor::new();
                    let uri = uri.map(|uri| redactor.url(uri));
                    tracing::warn!(method, uri = uri.as_deref(), %error, sources, "a handler failed");
                }
                RpcError::internal(error.to_string())
            }
        })
    }

    /// Returns the message with those of its sources, for the log.
    pub(crate) fn describe(&self) -> String {
        match &self.0 {
            Reason::NotFound => "not found".to_owned(),
            Reason::Message(text) => text.clone().into_owned(),
            Reason::Failed(error) => error.to_string(),
            Reason::Outcome(outcome) => format!("{outcome:?}"),
            Reason::Error(error) => match sources(&**error) {
                Some(sources) => format!("{error}: {sources}"),
                None => error.to_string(),
            },
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for RequestError {
    fn from(error: E) -> Self {
        let error = error.into();
        if let Some(error) = error.downcast_ref::<RpcError>() {
            return Self::protocol(error.clone());
        }
        match error.downcast_ref::<AskError>() {
            Some(error) => Self::protocol(error.clone().into()),
            None => Self(Reason::Error(error)),
        }
    }
}

/// For functions that tools share with prompts and resources. The text for the model becomes that of an internal error.
impl From<ToolError> for RequestError {
    fn from(error: ToolError) -> Self {
        Self(match error.0 {
            Repr::Message(text) => Reason::Message(text),
            Repr::Error(error) => Reason::Error(error),
            Repr::Failed(error) => Reason::Failed(error),
        })
    }
}

/// An error type that a handler may return: any type that converts into `E`.
///
/// This is implemented for all such types; the trait exists for the compiler message about other types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a handler",
    note = "return `{E}`: `Err({E}::new(\"what went wrong\"))`",
    note = "or a `String`, an `anyhow::Error`, an `eyre::Report`, a `Box<dyn Error + Send + Sync>`, or any `std::error::Error` that is `Send + Sync`"
)]
pub trait HandlerError<E>: Into<E> {}

#[diagnostic::do_not_recommend]
impl<T: Into<E>, E> HandlerError<E> for T {}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Message(text) => f.write_str(text),
            Repr::Error(error) => error.fmt(f),
            Repr::Failed(error) => error.fmt(f),
        }
    }
}
