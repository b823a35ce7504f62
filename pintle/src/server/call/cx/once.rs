//! What a call does at most once, and what it is known by.

use std::future::Future;

use pintle_proto::inputs::Once;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;

use super::Cx;
use crate::server::random;

impl Cx {
    /// Does something at most once in the course of the call, however often the handler runs.
    ///
    /// The value travels with the call, sealed, so that the rounds to come find it. Two of one key at the same time act
    /// once, and both get the value. A question beside it ends the round only when the act is done. If the client is lost,
    /// or says the same again, what was done is known to the next run.
    ///
    /// What does not hold: a client that makes its first request anew makes a new call, which acts again. An act that was
    /// begun and dropped before its end, because the call was cancelled or the handler left it, may be done or not: it is not
    /// begun again, and who asks for it gets an error that says so. Nothing is known of an act that was done while the process
    /// ended, or in another process that shares no [`ReplayGuard`](crate::server::ReplayGuard). Where that matters, give the
    /// other system [`call_key`](Self::call_key) to tell two attempts apart from two calls.
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
    /// The value cannot be printed as JSON, what was kept is no `T`, the act was begun before and nobody knows how it ended,
    /// or the call is over.
    pub async fn once<T, Fut>(&self, key: &str, act: Fut) -> Result<T, serde_json::Error>
    where
        T: Serialize + DeserializeOwned,
        Fut: Future<Output = T>,
    {
        let refuse = |reason: String| Err(serde::de::Error::custom(reason));
        loop {
            // Registered before looking, or an end in between would go unnoticed.
            let ended = self.0.over.notified();
            match self.0.call.begin_once(key) {
                Once::Act => break,
                Once::Done(value) => return serde_json::from_str(value.get()),
                Once::Acting => ended.await,
                Once::Unknown => {
                    return refuse(format!(
                        "the outcome of `{key}` is unknown: it was begun before, and its run was dropped; find out \
                         what came of it before it is done again"
                    ));
                }
                Once::Over => return refuse(format!("the call is over: do `{key}` before it ends")),
            }
        }
        let mut acting = Acting { cx: self, key, value: None };
        let value = act.await;
        acting.value = Some(to_raw_value(&value)?);
        Ok(value)
    }

    /// What the call is known by to other systems, for requests that they must not take for two: the same in every round
    /// and every run of this call, and unlike that of any other.
    ///
    /// A client that makes its first request anew makes another call, with another key.
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
    /// If the system has no randomness to give: there is no other way to be unlike all others.
    pub fn call_key(&self) -> String {
        self.0.call.call_key(make_key)
    }
}

#[expect(clippy::expect_used, reason = "a key that others may have too would let acts go undone")]
fn make_key() -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let bytes: [u8; 16] = random::bytes().expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// An act that was begun. If it is dropped without a value, nobody knows how it ended.
struct Acting<'a> {
    cx: &'a Cx,
    key: &'a str,
    value: Option<Box<serde_json::value::RawValue>>,
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        let call = self.cx.call();
        match self.value.take() {
            Some(value) => call.remember(self.key, value),
            None => call.lose(self.key),
        }
        self.cx.0.over.notify_waiters();
        // The round may wait for this to end.
        self.cx.wake();
    }
}
