//! Messages of the server, and their way through the layers of the client.

use std::{borrow::Cow, time::Duration};

use pintle_proto::client::Change;
use pintle_types::{Notification, RawObject, RpcError, method};
use tokio::time::timeout;

use super::{
    callbacks::{CallbackEvent, call_back},
    connection_state::ConnectionState,
    hub::Event,
};
use crate::{
    Error,
    client::{
        asking::{Asker, Handlers, caught},
        layer::{Cx, CxOrigin, MessageFuture, Next},
    },
};

impl ConnectionState {
    /// Returns the connection of a message, for layers.
    pub(in crate::client) fn cx_origin(&self) -> CxOrigin {
        let facts = self.server_facts();
        CxOrigin {
            connection: self.name.clone(),
            server: facts.info.clone(),
            revision: facts.verdict.map(|verdict| verdict.revision()),
            transport: self.transport,
        }
    }

    /// Answers an input request or a `ping`.
    pub(in crate::client) async fn answer(
        &self,
        handlers: Handlers,
        asker: Asker,
        method: &str,
        params: RawObject,
    ) -> Result<RawObject, RpcError> {
        let extensions = asker.extensions.clone();
        let perform = move |cx: Cx| -> MessageFuture {
            let (handlers, mut asker) = (handlers.clone(), asker.clone());
            Box::pin(async move {
                asker.extensions = cx.extensions().clone();
                handlers.answer(asker, cx.method(), cx.params()).await.map_err(Error::Rpc)
            })
        };
        let cx = Cx::received(self.cx_origin(), Cow::Owned(method.to_owned()), params, perform)
            .with_extensions(extensions);
        match caught(self.settings.layers.start(cx)).await {
            Some(Ok(result)) => Ok(result),
            Some(Err(Error::Rpc(error))) => Err(error),
            Some(Err(Error::Refused(reason))) => Err(RpcError::invalid_request(reason)),
            Some(Err(error)) => Err(RpcError::internal(error.to_string())),
            None => {
                tracing::error!(method, "a layer panicked");
                Err(RpcError::internal("the client failed to answer"))
            }
        }
    }

    /// Returns a notification of the server for the layers. `deliver` gets its params if they pass it on.
    fn notification_cx(
        &self,
        method: Cow<'static, str>,
        params: RawObject,
        deliver: impl Fn(RawObject) + Send + Sync + 'static,
    ) -> Cx {
        let perform = move |cx: Cx| -> MessageFuture {
            deliver(cx.into_params());
            Box::pin(std::future::ready(Ok(RawObject::empty())))
        };
        Cx::received(self.cx_origin(), method, params, perform).notification()
    }

    /// Passes a notification of a call through the layers, in the task of its caller.
    pub(in crate::client) async fn pass_notification(
        &self,
        method: &'static str,
        params: RawObject,
        deliver: impl Fn(RawObject) + Send + Sync + 'static,
    ) {
        let cx = self.notification_cx(method.into(), params, deliver);
        pass(&self.settings.layers, cx, self.settings.timeouts.call).await;
    }

    /// Queues a log message of the connection.
    pub(in crate::client) fn queue_log(&self, params: RawObject) {
        let (settings, name) = (self.settings.clone(), self.name.clone());
        let cx = self.notification_cx(method::NOTIFICATIONS_MESSAGE.into(), params, move |params| {
            if let Some(callback) = &settings.on_log {
                match params.decode() {
                    Ok(message) => call_back(&**callback, name.as_ref(), message),
                    Err(error) => tracing::debug!(%error, "a log message that does not fit"),
                }
            }
        });
        self.notify(CallbackEvent::Message(Box::new(cx)));
    }

    /// Queues a change.
    pub(super) fn queue_change(&self, change: &Change) {
        let Notification { method, params, .. } = change.to_notification();
        let (settings, name, hub) = (self.settings.clone(), self.name.clone(), self.hub.clone());
        let announced = method.clone();
        let cx = self.notification_cx(method, params.unwrap_or_default(), move |params| {
            let notification = Notification::new(announced.clone(), Some(params));
            let Some(change) = Change::of(&notification) else { return };
            hub.push(&Event::Changed(change.clone()));
            if let Some(callback) = &settings.on_change {
                call_back(&**callback, name.as_ref(), change);
            }
        });
        self.notify(CallbackEvent::Message(Box::new(cx)));
    }

    /// Queues a notification that the application handles.
    pub(in crate::client) fn queue_notification(&self, notification: Notification) {
        let Notification { method, params, .. } = notification;
        let (settings, name, hub) = (self.settings.clone(), self.name.clone(), self.hub.clone());
        let announced = method.clone();
        let cx = self.notification_cx(method, params.unwrap_or_default(), move |params| {
            let given = Some(params.clone()).filter(|params| !params.is_empty());
            hub.push(&Event::Notification(Notification::new(announced.clone(), given)));
            if let Some(callback) = settings.notified.get(&*announced) {
                call_back(&**callback, name.as_ref(), params);
            }
        });
        self.notify(CallbackEvent::Message(Box::new(cx)));
    }
}

/// Passes a notification through the layers, within the timeout of calls.
pub(super) async fn pass(layers: &Next, cx: Cx, limit: Duration) {
    let method = cx.method().to_owned();
    match timeout(limit, caught(layers.start(cx))).await {
        Ok(Some(Ok(_))) => {}
        Ok(Some(Err(error))) => tracing::debug!(method, %error, "a layer refused a notification"),
        Ok(None) => tracing::error!(method, "a layer panicked"),
        Err(_) => {
            tracing::warn!(method, "the layers of a notification took longer than {limit:?} and were ended");
        }
    }
}
