//! The messages of a handle, and their way through the layers of the client.

use std::{borrow::Cow, pin::pin, sync::Arc};

use pintle_proto::client::{RequestOutcome, SendError};
use pintle_types::{
    RawObject, method,
    schema::{ListToolsResult, SubscribeParams},
};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Connection,
    call::{decode, params},
    exchange::{Missing, failed},
    options::{RequestOptions, ResultUse, ToolsPageSlot},
};
use crate::{
    Error, Result,
    client::{
        driver::{Command, WatchChange},
        layer::{Cx, MessageFuture, Perform, in_span, request_span},
        state::{PageExtent, mailbox},
    },
    layer::Handling,
    transport::Delivery,
};

/// A request of a handle, which the layers may pass on more than once.
struct SentRequest {
    connection: Connection,
    options: RequestOptions,
}

impl Perform for SentRequest {
    fn perform(self: Arc<Self>, cx: Cx) -> MessageFuture {
        Box::pin(async move {
            let Self { connection, options } = &*self;
            match &options.result_use {
                ResultUse::Caller => Ok(connection.perform(&cx, options).await?.0),
                ResultUse::ToolResult => {
                    let (result, _) = connection.perform(&cx, options).await?;
                    let is_resolved = options.unresolved.as_ref().is_none_or(|slot| slot.is_empty());
                    // What is rare is boxed, because the future of every call has room for it.
                    if is_resolved && connection.may_check(&result) {
                        Box::pin(connection.check_result(cx.params(), &result, options.timeout)).await?;
                    }
                    Ok(result)
                }
                ResultUse::ToolsPage(slot) => Box::pin(self.tools_page(&cx, slot)).await,
                ResultUse::Forwarded => connection.exchange_forwarded(&cx, options).await,
            }
        })
    }
}

impl SentRequest {
    /// Requests a page of tools, and remembers them.
    async fn tools_page(&self, cx: &Cx, slot: &ToolsPageSlot) -> Result<RawObject> {
        let Self { connection, options } = self;
        let shared = connection.shared();
        let extent = PageExtent { first: cx.params().get("cursor").is_none(), bytes: 0 };
        let version = shared.tools_version();
        let (result, from_cache) = connection.perform(cx, options).await?;
        let mut page: ListToolsResult = decode(method::TOOLS_LIST, &result)?;
        let extent = PageExtent { bytes: result.as_str().len(), ..extent };
        let asked = (!from_cache).then_some(version);
        // Tools that must not be called are removed.
        let removed = shared.learn(&mut page, extent, asked);
        let result = if removed { params(&page)? } else { result };
        if let Some((name, found)) = &options.looked_up
            && let Some(tool) = page.tools.iter().rfind(|tool| *tool.name == **name)
        {
            found.put(Arc::new(tool.clone()));
        }
        slot.put((result.as_str().into(), page));
        Ok(result)
    }
}

impl Connection {
    /// Returns a message for the layers. `perform` sends it when they pass it on.
    pub(super) fn cx(
        &self,
        method: Cow<'static, str>,
        params: RawObject,
        perform: impl Fn(Self, Cx) -> MessageFuture + Send + Sync + 'static,
    ) -> Cx {
        let connection = self.clone();
        Cx::sent(self.shared().cx_origin(), method, params, move |cx| perform(connection.clone(), cx))
    }

    /// Sends a request until it is complete. What the connection does with its result is done inside the layers.
    /// Not an `async fn`, whose future would hold the arguments too.
    pub(in crate::client) fn send(
        &self,
        method: Cow<'static, str>,
        params: RawObject,
        mut options: RequestOptions,
    ) -> Handling<Result<RawObject>> {
        let params = options.with_meta(params, self.meta.as_ref());
        match params.and_then(|params| options.declare(self.shared()).map(|()| params)) {
            Ok(params) => {
                let request = SentRequest { connection: self.clone(), options };
                self.shared().settings.layers.go(Cx::sent(self.shared().cx_origin(), method, params, request))
            }
            Err(error) => Handling::ready(Err(error)),
        }
    }

    /// Sends one request without rounds, cache or policy.
    pub(super) async fn once(&self, method: &'static str, params: RawObject) -> Result<RawObject> {
        let cx = self.cx(method.into(), params, move |connection, cx| {
            Box::pin(async move {
                let params = cx.into_params();
                let span = request_span(|| connection.shared().cx_origin(), method, &params);
                let (post, pending) = mailbox(connection.shared());
                let mut options = RequestOptions::of(&connection);
                options.progress = false;
                let ask = options.ask(connection.shared(), method.into(), Cow::Owned(params), post);
                let exchange = async {
                    let sent = connection.command(Command::Call(ask)).await;
                    sent.map_err(|failure| failed(failure.into()))?;
                    options.wait(pending, Instant::now()).await.map_err(failed)
                };
                match in_span(span, pin!(exchange)).await? {
                    RequestOutcome::Complete(result) => Ok(result),
                    RequestOutcome::Violation(violation) => Err(Error::Protocol(violation)),
                    RequestOutcome::Error(error) if method == method::LOGGING_SET_LEVEL => {
                        Err(Error::Rpc(error))
                    }
                    // A server that answers anything is alive.
                    _ => Ok(RawObject::empty()),
                }
            })
        });
        self.shared().settings.layers.go(cx).await
    }

    /// Sends a notification.
    pub(super) async fn tell(&self, method: Cow<'static, str>, params: Option<RawObject>) -> Result<()> {
        let cx = self.cx(method, params.unwrap_or_default(), |connection, cx| {
            Box::pin(async move {
                let (method, params) = cx.into_parts();
                let params = Some(params).filter(|params| !params.is_empty());
                let (done, sent) = oneshot::channel();
                let queued = connection.command(Command::Tell(method, params, done)).await;
                queued.map_err(|failure| failed(failure.into()))?;
                let closed = |_| Error::Closed(connection.shared().how_ended());
                let sent: Result<(), SendError> = sent.await.map_err(closed)?;
                sent.map(|()| RawObject::empty()).map_err(|error| Error::Misuse(error.to_string()))
            })
        });
        self.shared().settings.layers.go(cx.notification()).await.map(drop)
    }

    /// Changes the subscriptions.
    pub(super) async fn watch(&self, watch: WatchChange) -> Result<RawObject> {
        let (uri, method) = match &watch {
            WatchChange::Resource(uri) => (uri, method::RESOURCES_SUBSCRIBE),
            WatchChange::NotResource(uri) => (uri, method::RESOURCES_UNSUBSCRIBE),
            WatchChange::Lists | WatchChange::Extension(..) => {
                return result_of(self.send_watch(watch, None).await?);
            }
        };
        // The driver passes the request for all subscriptions through the layers.
        if !self.revision().has_method(method) {
            return result_of(self.send_watch(watch, None).await?);
        }
        let params = params(&SubscribeParams::new(uri.as_str()))?;
        let cx = self.cx(method.into(), params, move |connection, cx| {
            let is_subscribed = matches!(watch, WatchChange::Resource(_));
            Box::pin(async move {
                let params = cx.into_params();
                let uri: Option<String> = params.decode_member("uri").ok().flatten();
                let uri =
                    uri.ok_or_else(|| Error::misuse(format!("`{method}` needs `uri`: set it in `params`")))?;
                let watch =
                    if is_subscribed { WatchChange::Resource(uri) } else { WatchChange::NotResource(uri) };
                let span = request_span(|| connection.shared().cx_origin(), method, &params);
                result_of(in_span(span, pin!(connection.send_watch(watch, Some(params)))).await?)
            })
        });
        self.shared().settings.layers.go(cx).await
    }

    /// `params` are those of the request of one resource.
    async fn send_watch(&self, watch: WatchChange, params: Option<RawObject>) -> Result<RequestOutcome> {
        let mut again = true;
        loop {
            let (post, pending) = mailbox(self.shared());
            let command = Command::Watch(watch.clone(), params.clone(), post);
            self.command(command).await.map_err(|failure| failed(Missing::Failed(failure)))?;
            match RequestOptions::of(self).wait(pending, Instant::now()).await.map_err(failed) {
                Err(Error::Failed(lost)) if again && lost.delivery == Delivery::LostSession => again = false,
                ended => return ended,
            }
        }
    }
}

/// Returns the result of a change of subscriptions.
fn result_of(outcome: RequestOutcome) -> Result<RawObject> {
    match outcome {
        RequestOutcome::Complete(granted) => Ok(granted),
        RequestOutcome::Error(error) => Err(Error::Rpc(error)),
        RequestOutcome::Violation(violation) => Err(Error::Protocol(violation)),
        _ => Ok(RawObject::empty()),
    }
}
