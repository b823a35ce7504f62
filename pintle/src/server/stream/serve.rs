//! From a server to a connection.

use std::sync::Arc;

use super::StreamConnection;
use crate::{
    Result,
    server::{Caller, Server, Serving, serving::Stop},
    transport::{DrivenTransport, Memory, Transport, driven, memory},
};

impl Server {
    /// Serves one connection in a task of its own.
    ///
    /// The peer of a local transport has every right: standard streams, memory, and Unix sockets that only the user of this
    /// process can open. On any other transport the peer is anonymous, and may not use what
    /// [requires](crate::server::ToolRoute::requires) a right. [`serve_to`](Self::serve_to) serves a known peer.
    pub fn serve(&self, transport: impl Transport) -> Result<Serving> {
        let transport = driven(transport);
        let caller = if transport.is_local() { Caller::local() } else { Caller::new() };
        self.serve_driven(transport, caller)
    }

    /// The same, for somebody who is known: what `caller` says counts, whatever the transport.
    pub fn serve_to(&self, transport: impl Transport, caller: Caller) -> Result<Serving> {
        self.serve_driven(driven(transport), caller)
    }

    fn serve_driven(&self, mut transport: Box<dyn DrivenTransport>, caller: Caller) -> Result<Serving> {
        self.check()?;
        self.0.linted.call_once(|| self.lint().iter().for_each(|warning| tracing::warn!("{warning}")));
        transport.limit_messages(self.snapshot().service.bounds().message_bytes);
        let stop = Arc::new(Stop::default());
        let connection = StreamConnection::new(self.clone(), transport, stop.clone()).known(caller);
        Ok(Serving::spawn(connection, stop))
    }

    /// Serves the process's own standard streams until the client hangs up.
    ///
    /// Nothing else reaches the wire: what the process prints goes to its standard error.
    #[cfg(feature = "stdio")]
    pub async fn serve_stdio(&self) -> Result<()> {
        self.serve(crate::transport::Stdio::new()?)?.wait().await.map(drop)
    }

    /// A connection to this server from within the process: give it to a client.
    pub fn in_process(&self) -> Result<Memory> {
        let (ours, theirs) = memory();
        drop(self.serve(ours)?);
        Ok(theirs)
    }
}
