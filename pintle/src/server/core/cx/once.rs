//! Actions of a call that run at most once, and its idempotency key.

use std::{future::Future, sync::Weak};

use pintle_proto::inputs::Once;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;

use super::Cx;
use crate::server::{core::driver::sink::CallSink, random};

impl Cx {
    /// Runs an action at most once per call, however often the handler runs, and returns its value.
    ///
    /// The value travels with the call, sealed, so that later rounds find it. Concurrent uses of one key run the action once,
    /// and all get its value. A question that is asked concurrently ends the round only when the action has completed. If the
    /// connection is lost, or the client sends the same request again, the next run finds the value.
    ///
    /// Limits: a client that repeats its first request starts a new call, which runs the action again. An action whose future
    /// was dropped before it completed, because the call was cancelled or the handler dropped it, may have had an effect or
    /// not: it is not run again, and later uses of the key return an error. The task of a
    /// [resumable](crate::server::ToolRoute::resumable) tool records that an action is started, and its value, so the same holds if
    /// its process ends. So does a later round of a stateless call, if processes share a
    /// [store](crate::Server::replay_store) of the uses of states, and a call of a resumable tool in a
    /// session over HTTP that processes share. Nothing is known of an action of
    /// another call that was running when the process ended. Where that matters, send
    /// [`call_key`](Self::call_key) to the other system as an idempotency key.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Confirmed {
    ///     confirmed: bool,
    /// }
    ///
    /// async fn order(cx: Cx) -> Result<String, ToolError> {
    ///     // A client without a session runs the handler again after each question, but this only once.
    ///     let number = cx.once("reserve", async { reserve().await }).await?;
    ///     let answer = cx.elicit::<Confirmed>("confirm", "Shall I order it?").await?.accepted();
    ///     let confirmed = answer.is_some_and(|answer| answer.confirmed);
    ///     Ok(format!("{number}: {}", if confirmed { "ordered" } else { "left" }))
    /// }
    ///
    /// async fn reserve() -> u32 {
    ///     4711
    /// }
    /// # let _ = pintle::server::tool("order", order);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be serialized, if the kept value is not a `T`, if an earlier run of the action was
    /// dropped, if the action cannot be recorded, or if the call is over.
    pub async fn once<T, Fut>(&self, key: &str, act: Fut) -> Result<T, serde_json::Error>
    where
        T: Serialize + DeserializeOwned,
        Fut: Future<Output = T>,
    {
        let refuse = |reason: String| Err(serde::de::Error::custom(reason));
        loop {
            // Created before looking, or a notification in between would be missed.
            let ended = self.0.end.over.notified();
            match self.0.call.begin_once(key) {
                Once::Act => break,
                Once::Done(value) => return serde_json::from_str(value.get()),
                Once::Acting => ended.await,
                Once::Unknown => {
                    return refuse(format!(
                        "outcome unknown: `{key}` was started before, and its run ended without a value; find out what came \
                         of it before you start it again"
                    ));
                }
                Once::Over => return refuse(format!("the call is over: do `{key}` before it ends")),
            }
        }
        let mut acting = Acting { cx: self, key, is_begun: false, value: None };
        // What is recorded as started is never started again.
        if let Err(reason) = self.checkpoint().await {
            return refuse(format!("`{key}` was not started, because that could not be recorded: {reason}"));
        }
        acting.is_begun = true;
        let value = act.await;
        acting.value = Some(to_raw_value(&value)?);
        drop(acting);
        if let Err(reason) = self.checkpoint().await {
            tracing::error!(reason, "the value of an action could not be recorded");
        }
        Ok(value)
    }

    /// Returns the value of an action that [`once`](Self::once) has completed in this round or an earlier one of the call; `None` if there
    /// is none.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn order(cx: Cx) -> Result<String, ToolError> {
    ///     let is_repeated = cx.once_value::<u32>("reserve")?.is_some();
    ///     let number = cx.once("reserve", async { 4711 }).await?;
    ///     Ok(format!("{number}, {}", if is_repeated { "as before" } else { "new" }))
    /// }
    /// # let _ = pintle::server::tool("order", order);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the kept value is not a `T`.
    pub fn once_value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, serde_json::Error> {
        match self.0.call.begin_once(key) {
            Once::Done(value) => serde_json::from_str(value.get()).map(Some),
            Once::Act => {
                drop(Acting { cx: self, key, is_begun: false, value: None });
                Ok(None)
            }
            Once::Acting | Once::Unknown | Once::Over => Ok(None),
        }
    }

    /// Returns an idempotency key for requests to other systems: the same in every round and every run of this call, and
    /// different for every other call.
    ///
    /// A client that repeats its first request starts another call, with another key.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn pay(cx: Cx) -> Result<String, ToolError> {
    ///     let agreed = cx.elicit::<()>("agreed", "Shall I pay?").await?.accepted().is_some();
    ///     if !agreed {
    ///         return Ok("Not paid.".into());
    ///     }
    ///     // The bank sees the same key if this runs again, and pays once.
    ///     let idempotency_key = format!("{}/pay", cx.call_key());
    ///     Ok(format!("Paid with {idempotency_key}."))
    /// }
    /// # let _ = pintle::server::tool("pay", pay);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the system's random number generator failed.
    pub fn call_key(&self) -> String {
        self.0.call.call_key(make_key)
    }
}

impl Cx {
    /// Waits until the call is recorded, if somebody records it: if it goes on after its response, has come with a state, or can be taken
    /// over by another process.
    async fn checkpoint(&self) -> Result<(), String> {
        match (self.sink(), self.held()) {
            (CallSink::Detached(events), _) => events.checkpoint().await,
            (_, Some(held)) => held.save(self.call()).await,
            (sink, None) if self.is_resumable() => {
                let session = sink.session().and_then(Weak::upgrade);
                match session.as_ref().and_then(|session| session.save_call(self.call())) {
                    Some(saving) => saving.await,
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Records the answers so far, if another process can go on with the call. If that fails, it asks again.
    pub(super) async fn record_answers(&self) {
        if self.is_resumable()
            && !matches!(self.sink(), CallSink::Detached(_))
            && self.held().is_none()
            && let Err(reason) = Box::pin(self.checkpoint()).await
        {
            tracing::debug!(reason, "an answer was not recorded");
        }
    }
}

#[expect(clippy::expect_used, reason = "a key that others may have too would let acts go undone")]
fn make_key() -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let bytes: [u8; 16] = random::bytes().expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A running action. If it is dropped without a value, its outcome is unknown.
struct Acting<'a> {
    cx: &'a Cx,
    key: &'a str,
    /// Whether the action may have had an effect.
    is_begun: bool,
    value: Option<Box<serde_json::value::RawValue>>,
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        let call = self.cx.call();
        match self.value.take() {
            Some(value) => call.remember(self.key, value),
            None if self.is_begun => call.lose(self.key),
            None => call.undo_once(self.key),
        }
        self.cx.0.end.over.notify_waiters();
        // The end of the round may wait for this.
        self.cx.wake();
    }
}
