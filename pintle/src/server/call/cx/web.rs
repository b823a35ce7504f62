use std::time::Duration;

use super::Cx;
use crate::server::HttpHead;
#[cfg(feature = "http-server")]
use crate::server::call::{
    own_sink::OwnSink,
    sink::{CallEvent, CallSink},
};

/// For calls that came over HTTP.
impl Cx {
    /// The head of the HTTP request that brought the call, if one did.
    pub fn http(&self) -> Option<&HttpHead> {
        self.0.context.head.as_ref()
    }

    /// Lets the client go and come back later for what is still to be said: after so long, if it follows the advice.
    ///
    /// For work that takes minutes: no connection has to be held open for it. The handler goes on. Only some clients
    /// over HTTP can do this (those of 2025-11-25); for all others nothing happens, and they wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::server::{Cx, tool};
    ///
    /// let render = tool("render", |cx: Cx| async move {
    ///     cx.hang_up(Duration::from_secs(5)).await;
    ///     // ... a long computation ...
    ///     "rendered"
    /// });
    /// ```
    pub async fn hang_up(&self, retry: Duration) {
        #[cfg(feature = "http-server")]
        if let CallSink::Own(sink) = &self.0.sink {
            sink.send(CallEvent::HangUp(u64::try_from(retry.as_millis()).unwrap_or(u64::MAX))).await;
        }
        let _ = retry;
    }

    /// Returns the sink of a call that has its own.
    #[cfg(feature = "http-server")]
    pub(crate) fn own_sink(&self) -> Option<&OwnSink> {
        match &self.0.sink {
            CallSink::Own(sink) => Some(sink),
            CallSink::Shared(_) => None,
        }
    }
}
