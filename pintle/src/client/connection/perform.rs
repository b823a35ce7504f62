//! The innermost step of a request: what happens once the layers have passed it on.

use std::{borrow::Cow, pin::pin, sync::Arc, time::Duration};

use pintle_proto::client::{Cache, CacheTicket, InputRequired, RequestOutcome, Rounds};
use pintle_types::{RawObject, RpcError};
use tokio::time::sleep;

use super::{
    Connection,
    admission::Admission,
    options::RequestOptions,
    rounds,
    unresolved::{ResultArm, Unresolved},
};
use crate::{
    Error, Result,
    client::layer::{Cx, in_span, request_span},
    suspended_call::SuspendedCall,
};

/// A request on its way from the layers to its result.
struct Performance<'a> {
    connection: &'a Connection,
    cx: &'a Cx,
    options: &'a RequestOptions,
    /// The params of the request, as an extension has prepared them.
    params: Cow<'a, RawObject>,
    /// The decision of the policy.
    admission: Option<Admission>,
    /// Where the result of the first round is kept: the state of the cache, and the partition.
    ticket: Option<(CacheTicket, String)>,
    /// The extension that has prepared the params.
    arm: Option<Arc<ResultArm>>,
    rounds: Option<Box<Rounds>>,
    /// The params of the next round, in place of those of the request.
    next: Option<RawObject>,
    /// Whether the user was asked to open pages, which happens once.
    pages_shown: bool,
}

/// The next step of a request.
enum RequestStep {
    /// Looks in the cache, and asks the policy and the extensions.
    Prepare,
    /// Sends a round, and waits for its outcome.
    Exchange,
    /// Has the user answer what the server needs first.
    Answer(Needed),
    /// Returns the result, and whether it is from the cache.
    Done(RawObject, bool),
}

/// The input that the server needs before it returns a result.
enum Needed {
    Input(InputRequired),
    /// Pages that the user has to open, and the error if that does not happen.
    Pages(Vec<RawObject>, RpcError),
}

impl Connection {
    /// Sends a request that the layers have passed on, until it is complete: looks in the cache, asks the policy, answers input
    /// requests. Returns also whether the result is from the cache.
    pub(in crate::client) async fn perform(
        &self,
        cx: &Cx,
        options: &RequestOptions,
    ) -> Result<(RawObject, bool)> {
        let mut request = Performance {
            connection: self,
            cx,
            options,
            params: Cow::Borrowed(cx.params()),
            admission: None,
            ticket: None,
            arm: None,
            rounds: None,
            next: None,
            pages_shown: false,
        };
        let mut step = RequestStep::Prepare;
        loop {
            step = match step {
                RequestStep::Prepare => request.prepare().await?,
                RequestStep::Exchange => request.exchange().await?,
                // What is rare is boxed: else the future of every call, which is moved, had room for it.
                RequestStep::Answer(needed) => Box::pin(request.answer(needed)).await?,
                RequestStep::Done(result, from_cache) => return Ok((result, from_cache)),
            }
        }
    }

    /// Sends one round of a request in its span.
    pub(super) async fn exchange_in_span(
        &self,
        cx: &Cx,
        params: &RawObject,
        options: &RequestOptions,
        admission: &mut Option<Admission>,
    ) -> Result<RequestOutcome> {
        let span = request_span(|| self.shared().cx_origin(), cx.method(), params);
        in_span(span, pin!(self.exchange(cx, params, options, admission))).await
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
}

impl Performance<'_> {
    async fn prepare(&mut self) -> Result<RequestStep> {
        let (connection, shared) = (self.connection, self.connection.shared());
        self.admission = connection.admit(self.cx.method(), &self.params).await?;
        if Cache::keeps(self.cx.method()) {
            let partition = cache_partition(&self.params);
            let cached = shared.with_cache(|cache, now| {
                match cache.fresh(self.cx.method(), &self.params, &partition, now) {
                    Some(result) => Err(result.clone()),
                    None => Ok(cache.ticket()),
                }
            });
            match cached {
                Some(Err(result)) => return Ok(RequestStep::Done(result, true)),
                Some(Ok(ticket)) => self.ticket = Some((ticket, partition)),
                None => {}
            }
        }
        if !connection.arms.is_empty() && !connection.facts().result_types {
            let prepared = Box::pin(connection.prepared(self.cx.method(), &self.params)).await;
            if let Some((params, arm)) = prepared {
                (self.params, self.arm) = (Cow::Owned(params), Some(arm));
            }
        }
        Ok(RequestStep::Exchange)
    }

    async fn exchange(&mut self) -> Result<RequestStep> {
        let params = self.next.as_ref().unwrap_or(&self.params);
        let exchange = self.connection.exchange_in_span(self.cx, params, self.options, &mut self.admission);
        match exchange.await? {
            RequestOutcome::Complete(result) => match self.arm.take_if(|arm| arm.recognizes(&result)) {
                Some(arm) => Box::pin(self.resolve(&arm, result)).await,
                None => {
                    self.keep(&result);
                    Ok(RequestStep::Done(result, false))
                }
            },
            RequestOutcome::Extension { result_type, result } => {
                let arms = &self.connection.arms;
                match arms.iter().find(|arm| arm.result_type == result_type).cloned() {
                    Some(arm) => Box::pin(self.resolve(&arm, result)).await,
                    None => Ok(RequestStep::Done(result, false)),
                }
            }
            RequestOutcome::InputRequired(asked) => Ok(RequestStep::Answer(Needed::Input(asked))),
            RequestOutcome::UrlRequired { urls, error } => {
                Ok(RequestStep::Answer(Needed::Pages(urls, error)))
            }
            RequestOutcome::Error(error) => Err(Error::Rpc(error)),
            RequestOutcome::Violation(violation) => Err(Error::Protocol(violation)),
            _ => Err(Error::Decode(format!("`{}` was answered with something unknown", self.cx.method()))),
        }
    }

    async fn answer(&mut self, needed: Needed) -> Result<RequestStep> {
        let shared = self.connection.shared();
        let handlers = self.options.questions(shared);
        match needed {
            Needed::Input(asked) => {
                let answers = match rounds::answer(shared, handlers, &asked, self.cx.extensions()).await? {
                    Ok(answers) => answers,
                    Err(reason) if self.options.suspends => {
                        let call = SuspendedCall::new(self.cx.method(), &self.params, asked, reason);
                        return Err(Error::Suspended(Box::new(call)));
                    }
                    Err(reason) => return Err(Error::Refused(reason)),
                };
                let limit = shared.settings.limits.rounds;
                let rounds = self
                    .rounds
                    .get_or_insert_with(|| Box::new(Rounds::new(self.params.clone().into_owned(), limit)));
                let round =
                    rounds.next(&asked, answers).map_err(|error| Error::Refused(error.to_string()))?;
                sleep(Duration::from_millis(round.wait_ms)).await;
                self.next = Some(round.params);
                self.ticket = None;
            }
            Needed::Pages(urls, error) => {
                let wait = self.options.timeout;
                if self.pages_shown || !rounds::show_pages(shared, handlers, &urls, wait).await? {
                    return Err(Error::Rpc(error));
                }
                self.pages_shown = true;
                self.next = None;
            }
        }
        let params = self.next.as_ref().unwrap_or(&self.params);
        self.connection.readmit_after_asking(&mut self.admission, params).await?;
        Ok(RequestStep::Exchange)
    }

    fn keep(&mut self, result: &RawObject) {
        if let Some((ticket, partition)) = self.ticket.take() {
            self.connection.shared().with_cache(|cache, now| {
                cache.store(self.cx.method(), &self.params, &partition, ticket, result, now);
            });
        }
    }

    /// Makes the result of a call from that of an extension.
    async fn resolve(&self, arm: &ResultArm, result: RawObject) -> Result<RequestStep> {
        if !arm.is_of(self.cx.method()) {
            return Err(Error::Decode(format!(
                "`{}` returned a result of type `{}`, which it cannot have",
                self.cx.method(),
                arm.result_type
            )));
        }
        let unresolved = Unresolved::new(self.connection, self.cx.method(), result, self.options);
        let resolved = match &self.options.unresolved {
            Some(slot) => {
                slot.put(unresolved);
                RawObject::empty()
            }
            None => arm.resolve(unresolved).await?,
        };
        Ok(RequestStep::Done(resolved, false))
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
