use std::{borrow::Cow, future::IntoFuture, pin::Pin};

use pintle_proto::client::RequestOutcome;
use pintle_types::{ErrorCode, RawObject, RawObjectBuilder, method, plain_error, schema::CallToolResult};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::mpsc::error::TrySendError,
    time::{Instant, sleep, timeout_at},
};

use super::{
    Connection,
    admission::Admission,
    exchange::{Missing, failed},
    options::{RequestOptions, ResultUse, request_options},
    repeat,
    unresolved::{CallStart, UnresolvedSlot},
};
use crate::{
    Error, Result,
    client::{
        driver::Command,
        layer::Cx,
        state::{CallFailure, mailbox},
    },
    transport::Delivery,
};

/// Limit of decisions on a call because the tools changed before it was sent.
const MAX_CHANGES: u32 = 4;

/// Builder of a tool call, from [`Connection::call`].
///
/// ```no_run
/// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
/// use std::time::Duration;
/// use serde_json::json;
///
/// let result = server
///     .call("index")
///     .args(json!({"path": "/srv"}))
///     .timeout(Duration::from_secs(60))
///     .on_progress(|progress| println!("{:?}", progress.message))
///     .extended_by_progress()
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "a call does nothing until it is sent"]
#[derive(Debug)]
pub struct Call<'a> {
    connection: &'a Connection,
    name: String,
    /// The params with the arguments; `None` while there are none.
    params: Option<Result<RawObject, String>>,
    options: RequestOptions,
}

impl<'a> Call<'a> {
    pub(in crate::client) fn new(connection: &'a Connection, name: String) -> Self {
        let options = RequestOptions::of(connection);
        Self { connection, name, params: None, options }
    }

    /// Sets the arguments: anything that serializes to a JSON object. `null` means none.
    pub fn args(mut self, arguments: impl Serialize) -> Self {
        self.params = Some(named(&self.name, &arguments));
        self
    }

    request_options!();

    /// Sends the call and waits for its result. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// The server refused or did not answer, or the result does not match the tool's output schema. A failed tool is a result: see
    /// [`is_error`](CallToolResult::is_error).
    pub async fn send(self) -> Result<CallToolResult> {
        let Self { connection, name, params, mut options } = self;
        let params = params.unwrap_or_else(|| named(&name, &()));
        let params = params.map_err(|message| misnamed(&name, &message))?;
        options.result_use = ResultUse::ToolResult;
        let result = connection.send(method::TOOLS_CALL.into(), params, options).await?;
        let read = CallToolResult::from_raw(&result, |meta| connection.shared().meta(meta));
        read.map_err(|error| undecodable(method::TOOLS_CALL, &error))
    }

    /// Sends the call and returns the first response: the result, or that of an extension, such as a task. [`send`](Self::send) waits
    /// for the result in any case.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn start(mut self) -> Result<CallStart> {
        let slot = UnresolvedSlot::default();
        self.options.unresolved = Some(slot.clone());
        let sent = self.send().await;
        match slot.take() {
            Some(unresolved) => Ok(CallStart::Unresolved(Box::new(unresolved))),
            None => sent.map(|result| CallStart::Complete(Box::new(result))),
        }
    }

    /// Sends the call and deserializes its structured content, or else its text as JSON.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); also if the tool failed, or its result is not a `T`.
    pub async fn send_as<T: DeserializeOwned>(self) -> Result<T> {
        let name = self.name.clone();
        let result = self.send().await?;
        if result.is_error == Some(true) {
            return Err(Error::Tool(result.text()));
        }
        let read = match result.structured_content {
            Some(content) => serde_json::from_value(content),
            None => serde_json::from_str(&result.text()),
        };
        read.map_err(|error| Error::Decode(format!("the result of tool `{name}`: {}", plain_error(&error))))
    }
}

/// Awaiting a call sends it: see [`send`](Call::send).
impl<'a> IntoFuture for Call<'a> {
    type Output = Result<CallToolResult>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<CallToolResult>> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl Connection {
    /// Sends one round of a request, again if it was lost and may be repeated.
    pub(super) async fn exchange(
        &self,
        cx: &Cx,
        params: &RawObject,
        options: &RequestOptions,
        admission: &mut Option<Admission>,
    ) -> Result<RequestOutcome> {
        let mut tries = if self.shared().has_headers { 2 } else { 1 };
        let (mut changes, mut retries) = (0, 0);
        let mut refreshed = !self.shared().server_facts().mirrors || cx.method() != method::TOOLS_CALL;
        loop {
            if admission.is_some() {
                self.readmit(admission, params).await?;
            }
            let (post, pending) = mailbox(self.shared());
            let mut ask = options.ask(self.shared(), cx.sent_method(), Cow::Borrowed(params), post);
            ask.decided_on = admission.as_ref().map(Admission::version);
            let started = Instant::now();
            // Who waits in the queue is not overtaken.
            let queue = self.commands();
            let unsent = match &options.batch_entry {
                Some(entry) => entry.take(ask),
                None => Some(ask),
            };
            let unsent = match unsent {
                Some(ask) if queue.capacity() == queue.max_capacity() => self.direct().send(ask),
                unsent => unsent,
            };
            let queued = match unsent {
                None => Ok(()),
                Some(unsent) => queue.try_send(Box::new(Command::Call(unsent.into_owned()))),
            };
            let sent = match queued {
                Ok(()) => Ok(Ok(())),
                Err(TrySendError::Closed(_)) => Ok(Err(())),
                Err(TrySendError::Full(command)) => {
                    let sending = self.commands().send(command);
                    let sending = timeout_at(options.deadline(started), sending);
                    Box::pin(sending).await.map(|sent| sent.map_err(drop))
                }
            };
            let ended = match sent {
                Ok(Ok(())) => options.wait(pending, started).await,
                Ok(Err(())) => Err(CallFailure::Closed(self.shared().how_ended()).into()),
                Err(_) => Err(Missing::Timeout(options.timeout)),
            };
            match ended {
                // The session was lost before it took the request, and there is another by now.
                Err(Missing::Failed(CallFailure::Failed(lost)))
                    if tries > 1 && lost.delivery == Delivery::LostSession =>
                {
                    tries -= 1;
                }
                Err(Missing::Failed(CallFailure::Outdated)) if changes < MAX_CHANGES => changes += 1,
                // The tool has other headers by now than we know of, or we never asked.
                Ok(RequestOutcome::Error(error))
                    if error.code == ErrorCode::HEADER_MISMATCH && !refreshed =>
                {
                    refreshed = true;
                    self.shared().forget_tools();
                    self.tools().await?;
                }
                Ok(RequestOutcome::Error(error)) if retries < self.shared().settings.retries => {
                    let Some(wait) = repeat::overload_delay(&error, retries) else {
                        return Ok(RequestOutcome::Error(error));
                    };
                    tracing::debug!(
                        method = cx.method(),
                        ?wait,
                        "the server is overloaded: the request is sent again"
                    );
                    Box::pin(sleep(wait)).await;
                    retries += 1;
                }
                Err(missing)
                    if retries < self.shared().settings.retries
                        && Box::pin(self.may_repeat(&missing, cx.method(), params)).await =>
                {
                    tracing::debug!(method = cx.method(), ?missing, "a request was lost: it is sent again");
                    Box::pin(sleep(repeat::delay(retries))).await;
                    retries += 1;
                }
                ended => return ended.map_err(failed),
            }
        }
    }
}

pub(in crate::client) fn params(params: &impl Serialize) -> Result<RawObject> {
    RawObject::from_serialize(params).map_err(|error| unprintable(&error))
}

/// Prints params with a name, and with arguments unless they are `null`. Printed member by member, so that the members are
/// known without another scan.
pub(in crate::client) fn named(name: &str, arguments: &impl Serialize) -> Result<RawObject, String> {
    let params = RawObject::builder(name.len() + 256).text("name", name);
    let printed = params.member("arguments", arguments).and_then(RawObjectBuilder::finish);
    let params = printed.map_err(|error| error.to_string())?;
    match params.get("arguments") {
        Some("null") => Ok(params.without(&["arguments"])),
        Some(arguments) if arguments.starts_with('{') => Ok(params),
        _ => Err("no JSON object: give a struct, a map or `json!({..})`".into()),
    }
}

/// The error of invalid arguments of a tool or prompt.
pub(in crate::client) fn misnamed(name: &str, message: &str) -> Error {
    Error::Misuse(format!("the arguments of `{name}`: {message}"))
}

pub(in crate::client) fn unprintable(error: &serde_json::Error) -> Error {
    Error::Misuse(format!("the params cannot be printed: {error}"))
}

pub(in crate::client) fn decode<T: DeserializeOwned>(method: &str, result: &RawObject) -> Result<T> {
    result.decode().map_err(|error| undecodable(method, &error))
}

pub(in crate::client) fn undecodable(method: &str, error: &serde_json::Error) -> Error {
    Error::Decode(format!("the result of `{method}`: {}", plain_error(error)))
}
