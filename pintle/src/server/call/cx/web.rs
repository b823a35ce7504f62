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
    /// Returns the head of the HTTP request, if the call came over HTTP.
    pub fn http(&self) -> Option<&HttpHead> {
        self.0.context.head.as_ref()
    }

    /// Closes the event stream of the call and asks the client to resume it after `retry`.
    ///
    /// For work that takes minutes, so that no connection has to be held open for it. The handler continues. Only clients of
    /// 2025-11-25 over HTTP support this; for all others nothing happens, and they wait.
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
