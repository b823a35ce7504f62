use std::borrow::Cow;

use pintle_types::{RawObject, method};
use serde::Serialize;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Connection,
    call::{misnamed, named},
    options::RequestOptions,
    slot::OutputSlot,
};
use crate::{
    Error, Result,
    client::driver::{CallRequest, Command},
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

    /// Sends all requests, where the revision has batches as one message, and returns their results in the order in which they were
    /// added. Each passes the [layers](crate::Client::layer); the batch is sent when they have passed on or refused all.
    pub async fn send(self) -> Vec<Result<RawObject>> {
        let Self { connection, requests } = self;
        let is_batch = connection.shared().server_facts().batches;
        let (entries, mut taken) = mpsc::channel(requests.len().max(1));
        let mut running = JoinSet::new();
        let mut results: Vec<Option<Result<RawObject>>> = Vec::with_capacity(requests.len());
        for (at, (method, params)) in requests.into_iter().enumerate() {
            results.push(None);
            let (connection, mut options) = (connection.clone(), RequestOptions::of(connection));
            let entry = BatchEntry::new(at, &entries);
            options.batch_entry = is_batch.then(|| entry.clone());
            running.spawn(async move {
                let result = match params {
                    Ok(params) => connection.send(method, params, options).await,
                    Err(error) => Err(error),
                };
                entry.leave();
                (at, result)
            });
        }
        drop(entries);
        if is_batch {
            let mut asks = Vec::with_capacity(results.len());
            while let Some(ask) = taken.recv().await {
                asks.push(ask);
            }
            asks.sort_unstable_by_key(|(at, _)| *at);
            let asks = asks.into_iter().map(|(_, ask)| ask).collect();
            if let Err(failure) = connection.command(Command::Batch(asks)).await {
                tracing::debug!(?failure, "a batch was not sent");
            }
        }
        while let Some(ended) = running.join_next().await {
            if let Ok((at, result)) = ended
                && let Some(slot) = results.get_mut(at)
            {
                *slot = Some(result);
            }
        }
        let lost = || Err(Error::Closed(connection.shared().how_ended()));
        results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
    }
}

/// The place of a request in a batch, which is sent when all are taken or left.
#[derive(Clone, Debug)]
pub(in crate::client) struct BatchEntry {
    at: usize,
    entry: OutputSlot<mpsc::Sender<(usize, CallRequest<'static>)>>,
}

impl BatchEntry {
    fn new(at: usize, entries: &mpsc::Sender<(usize, CallRequest<'static>)>) -> Self {
        let entry = OutputSlot::default();
        entry.put(entries.clone());
        Self { at, entry }
    }

    /// Takes the entry with a request. Returns the request if the entry was taken before.
    pub(in crate::client) fn take<'a>(&self, ask: CallRequest<'a>) -> Option<CallRequest<'a>> {
        let Some(entries) = self.entry.take() else { return Some(ask) };
        // There is room for all. If nobody waits for the batch, the request ends.
        let _ = entries.try_send((self.at, ask.into_owned()));
        None
    }

    fn leave(&self) {
        drop(self.entry.take());
    }
}
