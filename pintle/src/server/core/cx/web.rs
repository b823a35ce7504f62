use std::{net::SocketAddr, sync::Arc, time::Duration};

#[cfg(feature = "http-server")]
use pintle_proto::ledger::Charge;
#[cfg(feature = "http-server")]
use pintle_types::RpcError;

use super::Cx;
#[cfg(feature = "http-server")]
use crate::server::core::driver::{
    own_sink::OwnSink,
    sink::{CallEvent, CallSink},
};
use crate::{
    server::{HttpHead, TlsFacts},
    transport::TransportKind,
};

/// The reason why a call ends whose client holds most.
#[cfg(feature = "http-server")]
const GAVE_WAY: &str = "the call was ended: the server needs the memory of its arguments for others, and this client holds most: send less at once, and call again later if it may run twice";

/// For the transport of a call.
impl Cx {
    /// Returns the kind of the transport that the call came over.
    pub fn transport(&self) -> TransportKind {
        self.0.context.transport()
    }

    /// Returns the address of the client, if the transport is a TCP socket and knows it: on TCP, and over HTTP with an
    /// `HttpServer`. Behind a proxy, this is the address of the proxy.
    ///
    /// A service that is mounted in a framework knows it if the framework inserts a [`PeerAddress`](crate::server::PeerAddress).
    ///
    /// ```
    /// use pintle::server::{Cx, tool};
    ///
    /// let whence = tool("whence", |cx: Cx| async move {
    ///     let address = cx.peer_address().map_or("nowhere".to_owned(), |address| address.ip().to_string());
    ///     format!("You use {} from {address}.", cx.transport())
    /// });
    /// ```
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.0.context.address().map(|address| address.0)
    }

    /// Returns the facts of the TLS connection, if the code that accepted it has reported them: see
    /// [`TlsFacts`].
    pub fn tls(&self) -> Option<&TlsFacts> {
        let left = self.0.context.left();
        left.get::<Arc<TlsFacts>>().map(|facts| &**facts).or_else(|| left.get())
    }

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

    /// Has the call end if others need the room of a charge: that of its params, or of those of an earlier round.
    #[cfg(feature = "http-server")]
    pub(crate) fn give_way(&self, charge: &Charge) {
        let state = Arc::downgrade(&self.0);
        charge.on_give_way(move || {
            if let Some(CallSink::Own(sink)) = state.upgrade().as_deref().map(|state| &state.sink) {
                // Not overload, after which clients repeat a call: this one ran, and may have had effects.
                sink.fail(RpcError::internal(GAVE_WAY));
            }
        });
    }

    /// Returns the sink of a call that has its own.
    #[cfg(feature = "http-server")]
    pub(crate) fn own_sink(&self) -> Option<&OwnSink> {
        match &self.0.sink {
            CallSink::Own(sink) => Some(sink),
            CallSink::Shared(_) | CallSink::Detached(_) => None,
        }
    }
}
