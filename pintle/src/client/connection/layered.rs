//! Messages of a handle, and their way through the layers of the client.

use std::borrow::Cow;

use pintle_proto::client::{RequestOutcome, SendError};
use pintle_types::{
    RawObject, method,
    schema::{CallToolResult, ListToolsResult, SubscribeParams},
};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Connection,
    call::{decode, params, undecodable},
    exchange::{Missing, failed},
    options::{RequestOptions, ResultUse},
    span::in_span,
};
use crate::{
    Error, Result,
    client::{
        driver::{Command, Watch},
        layer::{Cx, LayerFuture, Next},
        state::{PageExtent, mailbox},
    },
    transport::Delivery,
};

impl Connection {
    /// Sends a request through the layers. What the connection does with its result is done inside them.
    pub(in crate::client) fn perform_layered(
        &self,
        layers: &Next,
        method: Cow<'static, str>,
        params: RawObject,
        options: &RequestOptions,
    ) -> LayerFuture {
        let (connection, mut options) = (self.clone(), options.clone());
        options.layered = true;
        let sent = method.clone();
        let perform = move |cx: Cx| -> LayerFuture {
            let (connection, mut options, method) = (connection.clone(), options.clone(), sent.clone());
            Box::pin(async move {
                options.extensions = cx.extensions().clone();
                connection.perform_inside(method, cx.into_params(), options).await
            })
        };
        layers.go(Cx::sent(self.shared().cx_origin(), method, params, perform))
    }

    /// Sends a request that the layers have passed on.
    async fn perform_inside(
        &self,
        method: Cow<'static, str>,
        params: RawObject,
        mut options: RequestOptions,
    ) -> Result<RawObject> {
        match (options.result_use, &*method) {
            (ResultUse::ToolResult, _) => {
                let name: String = params.decode_member("name").ok().flatten().unwrap_or_default();
                let result = self.perform(method.clone(), params, &mut options).await?;
                let read = CallToolResult::from_raw(&result, |meta| self.shared().meta(meta));
                let read = read.map_err(|error| undecodable(&method, &error))?;
                self.check_output(&name, &read, options.timeout).await?;
                Ok(result)
            }
            (ResultUse::Page, method::TOOLS_LIST) => {
                let (first, version) = (params.get("cursor").is_none(), self.shared().tools_version());
                let result = self.perform(method.clone(), params, &mut options).await?;
                let mut page: ListToolsResult = decode(&method, &result)?;
                let (count, asked) = (page.tools.len(), (!options.from_cache).then_some(version));
                self.shared().learn(&mut page, PageExtent { first, bytes: result.as_str().len() }, asked);
                // Tools that must not be called were removed.
                if page.tools.len() == count { Ok(result) } else { self::params(&page) }
            }
            _ => self.perform(method, params, &mut options).await,
        }
    }

    /// Sends one request without rounds, cache or policy.
    pub(super) async fn once(&self, method: &'static str, params: RawObject) -> Result<RawObject> {
        let Some(layers) = &self.shared().settings.layers else {
            return self.send_once(method, params).await;
        };
        let connection = self.clone();
        let perform = move |cx: Cx| -> LayerFuture {
            let connection = connection.clone();
            Box::pin(async move { connection.send_once(method, cx.into_params()).await })
        };
        layers.go(Cx::sent(self.shared().cx_origin(), method.into(), params, perform)).await
    }

    async fn send_once(&self, method: &'static str, params: RawObject) -> Result<RawObject> {
        let (post, pending) = mailbox(self.shared());
        let mut options = RequestOptions::of(self);
        options.progress = false;
        let span = self.span(method, &params);
        let ask = options.ask(self.shared(), method.into(), Cow::Owned(params), post);
        let exchange = async {
            self.command(Command::Call(ask)).await.map_err(|failure| failed(failure.into()))?;
            options.wait(pending, Instant::now()).await.map_err(failed)
        };
        match in_span(span, exchange).await? {
            RequestOutcome::Complete(result) => Ok(result),
            RequestOutcome::Violation(violation) => Err(Error::Protocol(violation)),
            RequestOutcome::Error(error) if method == method::LOGGING_SET_LEVEL => Err(Error::Rpc(error)),
            // A server that answers anything is alive.
            _ => Ok(RawObject::empty()),
        }
    }

    /// Sends a notification.
    pub(super) async fn tell(&self, method: Cow<'static, str>, params: Option<RawObject>) -> Result<()> {
        let Some(layers) = &self.shared().settings.layers else {
            return self.send_notification(method, params).await;
        };
        let (connection, sent) = (self.clone(), method.clone());
        let perform = move |cx: Cx| -> LayerFuture {
            let (connection, method) = (connection.clone(), sent.clone());
            Box::pin(async move {
                let params = Some(cx.into_params()).filter(|params| !params.is_empty());
                connection.send_notification(method, params).await.map(|()| RawObject::empty())
            })
        };
        let cx = Cx::sent(self.shared().cx_origin(), method, params.unwrap_or_default(), perform);
        layers.go(cx.notification()).await.map(drop)
    }

    async fn send_notification(&self, method: Cow<'static, str>, params: Option<RawObject>) -> Result<()> {
        let (done, sent) = oneshot::channel();
        self.command(Command::Tell(method, params, done)).await.map_err(|failure| failed(failure.into()))?;
        let sent: Result<(), SendError> = sent.await.map_err(|_| Error::Closed(self.shared().how_ended()))?;
        sent.map_err(|error| Error::Misuse(error.to_string()))
    }

    /// Changes the subscriptions.
    pub(super) async fn watch(&self, watch: Watch) -> Result<RawObject> {
        let (uri, method) = match &watch {
            Watch::Resource(uri) => (uri, method::RESOURCES_SUBSCRIBE),
            Watch::NotResource(uri) => (uri, method::RESOURCES_UNSUBSCRIBE),
            Watch::Lists | Watch::Extension(..) => return self.send_watch(watch, None).await,
        };
        let Some(layers) = &self.shared().settings.layers else { return self.send_watch(watch, None).await };
        // The driver passes the request for all subscriptions through the layers.
        if !self.revision().has_method(method) {
            return self.send_watch(watch, None).await;
        }
        let (connection, watch) = (self.clone(), watch.clone());
        let params = params(&SubscribeParams::new(uri.as_str()))?;
        let perform = move |cx: Cx| -> LayerFuture {
            let (connection, watch) = (connection.clone(), watch.clone());
            Box::pin(async move {
                let params = cx.into_params();
                let uri: Option<String> = params.decode_member("uri").ok().flatten();
                let uri =
                    uri.ok_or_else(|| Error::misuse(format!("`{method}` needs `uri`: set it in `params`")))?;
                let watch = match watch {
                    Watch::NotResource(_) => Watch::NotResource(uri),
                    _ => Watch::Resource(uri),
                };
                connection.send_watch(watch, Some(params)).await
            })
        };
        layers.go(Cx::sent(self.shared().cx_origin(), method.into(), params, perform)).await
    }

    /// `params` are those of the request of one resource, if layers have passed it on.
    async fn send_watch(&self, watch: Watch, params: Option<RawObject>) -> Result<RawObject> {
        let mut again = true;
        loop {
            let (post, pending) = mailbox(self.shared());
            let command = Command::Watch(watch.clone(), params.clone(), post);
            self.command(command).await.map_err(|failure| failed(Missing::Failed(failure)))?;
            match RequestOptions::of(self).wait(pending, Instant::now()).await.map_err(failed) {
                Ok(RequestOutcome::Error(error)) => return Err(Error::Rpc(error)),
                Ok(RequestOutcome::Violation(violation)) => return Err(Error::Protocol(violation)),
                Ok(RequestOutcome::Complete(granted)) => return Ok(granted),
                Ok(_) => return Ok(RawObject::empty()),
                Err(Error::Failed(lost)) if again && lost.delivery == Delivery::LostSession => again = false,
                Err(error) => return Err(error),
            }
        }
    }
}
