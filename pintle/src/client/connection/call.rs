use std::{
    borrow::Cow,
    future::IntoFuture,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use pintle_proto::client::{Cache, CacheTicket, RequestOutcome, Rounds};
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
    repeat, rounds,
    unresolved::{CallStart, ResultArm, Unresolved, UnresolvedSlot},
};
use crate::{
    Error, Result,
    client::{
        driver::Command,
        layer::{in_span, request_span},
        state::{CallFailure, mailbox},
    },
    suspended_call::SuspendedCall,
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
    /// Sends a request that the layers have passed on, until it is complete: looks in the cache, asks the policy, answers input
    /// requests. Returns also whether the result is from the cache.
    pub(in crate::client) async fn perform(
        &self,
        method: Cow<'static, str>,
        params: RawObject,
        options: &mut RequestOptions,
    ) -> Result<(RawObject, bool)> {
        options.declare(self.shared())?;
        let mut admission = self.admit(&method, &params).await?;
        let keeps = !options.forwarded && Cache::keeps(&method);
        let partition = if keeps { cache_partition(&params) } else { String::new() };
        let cached = keeps.then(|| {
            self.shared().with_cache(|cache, now| match cache.fresh(&method, &params, &partition, now) {
                Some(result) => Err(result.clone()),
                None => Ok(cache.ticket()),
            })
        });
        let ticket = match cached.flatten() {
            Some(Err(result)) => return Ok((result, true)),
            Some(Ok(ticket)) => Some(ticket),
            None => None,
        };
        let prepared = match self.arms.is_empty() || options.forwarded || self.facts().result_types {
            true => None,
            false => Box::pin(self.prepared(&method, &params)).await,
        };
        let (params, arm) = match prepared {
            Some((params, arm)) => (params, Some(arm)),
            None => (params, None),
        };
        let limits = &self.shared().settings.limits;
        let mut rounds = None;
        // What is sent instead of the params.
        let mut next: Option<RawObject> = None;
        let (mut pages_shown, mut asked_user) = (false, false);
        let mut refreshed = !self.shared().server_facts().mirrors || method != method::TOOLS_CALL;
        loop {
            let sent = next.as_ref().unwrap_or(&params);
            if asked_user && admission.is_some() {
                self.readmit_after_asking(&mut admission, sent).await?;
            }
            let span = request_span(|| self.shared().cx_origin(), &method, sent);
            let ended = {
                let exchange = pin!(self.exchange(method.clone(), sent, options, &mut admission));
                in_span(span, exchange).await
            };
            match ended? {
                RequestOutcome::Complete(result)
                    if arm.as_ref().is_some_and(|arm| arm.recognizes(&result)) =>
                {
                    let resolved = Box::pin(self.resolve(arm.as_ref(), &method, result, options)).await?;
                    return Ok((resolved, false));
                }
                RequestOutcome::Complete(result) => {
                    if let (Some(ticket), None) = (ticket, &rounds) {
                        self.keep(&method, &params, &partition, ticket, &result);
                    }
                    return Ok((result, false));
                }
                RequestOutcome::Extension { result, .. } if options.forwarded => return Ok((result, false)),
                RequestOutcome::Extension { result_type, result } => {
                    let arm = self.arms.iter().find(|arm| arm.result_type == result_type).cloned();
                    let resolved = Box::pin(self.resolve(arm.as_ref(), &method, result, options)).await?;
                    return Ok((resolved, false));
                }
                // The other client answers them.
                RequestOutcome::InputRequired(asked) if options.forwarded => {
                    return Ok((asked.result, false));
                }
                RequestOutcome::UrlRequired { error, .. } if options.forwarded => {
                    return Err(Error::Rpc(error));
                }
                RequestOutcome::InputRequired(asked) => {
                    // What is rare is boxed: else the future of every call, which is moved, had room for it.
                    let (handlers, extensions) = (options.questions(self.shared()), &options.extensions);
                    let answers =
                        Box::pin(rounds::answer(self.shared(), handlers, &asked, extensions)).await?;
                    let answers = match answers {
                        Ok(answers) => answers,
                        Err(reason) if options.suspends => {
                            let call = SuspendedCall::new(&method, &params, asked, reason);
                            return Err(Error::Suspended(Box::new(call)));
                        }
                        Err(reason) => return Err(Error::Refused(reason)),
                    };
                    let rounds = rounds.get_or_insert_with(|| Rounds::new(params.clone(), limits.rounds));
                    let round =
                        rounds.next(&asked, answers).map_err(|error| Error::Refused(error.to_string()))?;
                    Box::pin(sleep(Duration::from_millis(round.wait_ms))).await;
                    next = Some(round.params);
                    asked_user = true;
                }
                RequestOutcome::UrlRequired { urls, error } => {
                    let shown = rounds::show_pages(
                        self.shared(),
                        options.questions(self.shared()),
                        &urls,
                        options.timeout,
                    );
                    if pages_shown || !Box::pin(shown).await? {
                        return Err(Error::Rpc(error));
                    }
                    (pages_shown, asked_user) = (true, true);
                    next = None;
                }
                // The tool has other headers by now than we know of, or we never asked.
                RequestOutcome::Error(error) if error.code == ErrorCode::HEADER_MISMATCH && !refreshed => {
                    refreshed = true;
                    self.shared().forget_tools();
                    self.tools().await?;
                }
                RequestOutcome::Error(error) => return Err(Error::Rpc(error)),
                RequestOutcome::Violation(violation) => return Err(Error::Protocol(violation)),
                _ => return Err(Error::Decode(format!("`{method}` was answered with something unknown"))),
            }
        }
    }

    /// Returns the params that ask for the result of an extension in a session, if an extension wants that.
    async fn prepared(&self, method: &str, params: &RawObject) -> Option<(RawObject, Arc<ResultArm>)> {
        for arm in self.arms.iter().filter(|arm| arm.is_of(method)) {
            if let Some(params) = arm.prepare(self, params).await {
                return Some((params, arm.clone()));
            }
        }
        None
    }

    /// Makes the result of a call from that of an extension.
    async fn resolve(
        &self,
        arm: Option<&Arc<ResultArm>>,
        method: &str,
        result: RawObject,
        options: &RequestOptions,
    ) -> Result<RawObject> {
        let Some(arm) = arm else { return Ok(result) };
        if !arm.is_of(method) {
            return Err(Error::Decode(format!(
                "`{method}` returned a result of type `{}`, which it cannot have",
                arm.result_type
            )));
        }
        let unresolved = Unresolved::new(self, method, result, options);
        match &options.unresolved {
            Some(slot) => {
                slot.put(unresolved);
                Ok(RawObject::empty())
            }
            None => arm.resolve(unresolved).await,
        }
    }

    async fn exchange(
        &self,
        method: Cow<'static, str>,
        params: &RawObject,
        options: &mut RequestOptions,
        admission: &mut Option<Admission>,
    ) -> Result<RequestOutcome> {
        let mut tries = if self.shared().has_headers { 2 } else { 1 };
        let (mut changes, mut retries) = (0, 0);
        loop {
            if admission.is_some() {
                self.readmit(admission, params).await?;
            }
            let (post, pending) = mailbox(self.shared());
            let mut ask = options.ask(self.shared(), method.clone(), Cow::Borrowed(params), post);
            ask.decided_on = admission.as_ref().map(Admission::version);
            let started = Instant::now();
            // Who waits in the queue is not overtaken.
            let queue = self.commands();
            let unsent = match &options.seat {
                Some(seat) => seat.take(ask),
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
                Err(missing)
                    if retries < self.shared().settings.retries
                        && Box::pin(self.may_repeat(&missing, &method, params)).await =>
                {
                    tracing::debug!(%method, ?missing, "a request was lost: it is sent again");
                    Box::pin(sleep(repeat::delay(retries))).await;
                    retries += 1;
                }
                ended => return ended.map_err(failed),
            }
        }
    }

    fn keep(
        &self,
        method: &str,
        params: &RawObject,
        partition: &str,
        ticket: CacheTicket,
        result: &RawObject,
    ) {
        self.shared().with_cache(|cache, now| cache.store(method, params, partition, ticket, result, now));
    }
}

/// Returns the metadata that a private result may depend on, such as the user on whose behalf a host sends the request. Trace
/// contexts differ with every request and are left out.
fn cache_partition(params: &RawObject) -> String {
    let meta: Option<RawObject> = params.decode_member("_meta").ok().flatten();
    let Some(meta) = meta else { return String::new() };
    let mut members: Vec<_> = meta
        .iter()
        .filter(|(name, _)| !matches!(*name, "progressToken" | "traceparent" | "tracestate"))
        .collect();
    members.sort_unstable();
    members.iter().flat_map(|(name, value)| ["\"", name, "\":", value, "\n"]).collect()
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
