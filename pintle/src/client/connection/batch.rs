use std::borrow::Cow;

use pintle_proto::client::RequestOutcome;
use pintle_types::{RawObject, method};
use serde::Serialize;
use tokio::{task::JoinSet, time::Instant};

use super::{
    Connection,
    call::{misnamed, named},
    exchange::failed,
    options::RequestOptions,
    span::in_span,
};
use crate::{
    Error, Result,
    client::{driver::Command, state::mailbox},
};

/// Builder of a batch of requests, from [`Connection::batch`].
///
/// ```no_run
/// # async fn example(server: pintle::Connection) -> pintle::Result<()> {
/// use serde_json::json;
///
/// let results = server.batch().call_tool("a", json!({})).call_tool("b", json!({"n": 1})).send().await;
/// for result in results {
///     println!("{}", result?.as_str());
/// }
/// # Ok(()) }
/// ```
#[must_use = "a batch does nothing until it is sent"]
#[derive(Debug)]
pub struct Batch<'a> {
    connection: &'a Connection,
    requests: Vec<(Cow<'static, str>, Result<RawObject>)>,
}

impl<'a> Batch<'a> {
    pub(in crate::client) fn new(connection: &'a Connection) -> Self {
        Self { connection, requests: Vec::new() }
    }

    /// Adds a tool call.
    pub fn call_tool(self, name: &str, arguments: impl Serialize) -> Self {
        let params = named(name, &arguments).map_err(|message| misnamed(name, &message));
        self.add(method::TOOLS_CALL.into(), params)
    }

    /// Adds a request of any method.
    pub fn request(self, method: impl Into<Cow<'static, str>>, params: RawObject) -> Self {
        self.add(method.into(), Ok(params))
    }

    fn add(mut self, method: Cow<'static, str>, params: Result<RawObject>) -> Self {
        self.requests.push((method, params));
        self
    }

    /// Sends all requests, and returns their results in the order in which they were added. If the client has
    /// [layers](crate::Client::layer), each passes them and is sent as a message of its own.
    pub async fn send(self) -> Vec<Result<RawObject>> {
        let shared = self.connection.shared();
        if shared.server_facts().batches && shared.settings.layers.is_none() {
            self.together().await
        } else {
            self.side_by_side().await
        }
    }

    async fn together(self) -> Vec<Result<RawObject>> {
        let Self { connection, requests } = self;
        let shared = connection.shared();
        let mut options = RequestOptions::of(connection);
        let mut asks = Vec::with_capacity(requests.len());
        let mut waiting = Vec::with_capacity(requests.len());
        for (method, params) in requests {
            let admitted = match params {
                Ok(params) => connection.admit(&method, &params).await.map(|admission| (params, admission)),
                Err(error) => Err(error),
            };
            waiting.push(admitted.map(|(params, admission)| {
                let (post, pending) = mailbox(shared);
                let span = connection.span(&method, &params);
                let mut ask = options.ask(shared, method, Cow::Owned(params), post);
                ask.decided_on = admission.map(|admission| admission.version());
                asks.push(ask);
                (pending, span)
            }));
        }
        let started = Instant::now();
        if let Err(failure) = connection.command(Command::Batch(asks)).await {
            tracing::debug!(?failure, "a batch was not sent");
        }
        let mut results = Vec::with_capacity(waiting.len());
        for pending in waiting {
            results.push(match pending {
                Ok((pending, span)) => {
                    match in_span(span, async { options.wait(pending, started).await.map_err(failed) }).await
                    {
                        Ok(RequestOutcome::Complete(result) | RequestOutcome::Extension { result, .. }) => {
                            Ok(result)
                        }
                        Ok(RequestOutcome::Error(error) | RequestOutcome::UrlRequired { error, .. }) => {
                            Err(Error::Rpc(error))
                        }
                        Ok(RequestOutcome::Violation(violation)) => Err(Error::Protocol(violation)),
                        Ok(_) => Err(Error::Decode("the server asks in a batch".into())),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
            });
        }
        results
    }

    async fn side_by_side(self) -> Vec<Result<RawObject>> {
        let mut running = JoinSet::new();
        let mut results: Vec<Option<Result<RawObject>>> = Vec::with_capacity(self.requests.len());
        for (at, (method, params)) in self.requests.into_iter().enumerate() {
            results.push(None);
            let connection = self.connection.clone();
            running.spawn(async move {
                let result = match params {
                    Ok(params) => connection.call_raw(method, params).await,
                    Err(error) => Err(error),
                };
                (at, result)
            });
        }
        while let Some(ended) = running.join_next().await {
            if let Ok((at, result)) = ended
                && let Some(slot) = results.get_mut(at)
            {
                *slot = Some(result);
            }
        }
        let lost = || Err(Error::Closed(self.connection.shared().how_ended()));
        results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
    }
}
