//! Serving a connection: `Server::serve`, `serve_to`, `serve_stdio` and `in_process`.

use std::sync::Arc;

use super::StreamConnection;
use crate::{
    Result,
    message_log::Side,
    server::{Caller, PeerAddress, Server, Serving, ServingHandle, serving::Stop},
    transport::{DrivenTransport, LoggedTransport, Memory, Transport, driven, memory},
};

impl Server {
    /// Serves one connection in a task.
    ///
    /// The peer of a local transport has every right: standard streams, memory, and Unix sockets that only the user of this
    /// process can open. On any other transport the peer is anonymous, and may not use what
    /// [requires](crate::server::ToolRoute::requires) a right. [`serve_to`](Self::serve_to) serves a known peer.
    pub fn serve(&self, transport: impl Transport) -> Result<Serving> {
        let transport = driven(transport);
        let caller = if transport.is_local() { Caller::local() } else { Caller::new() };
        self.serve_driven(transport, caller)
    }

    /// Serves one connection of a known caller, whatever the transport.
    pub fn serve_to(&self, transport: impl Transport, caller: Caller) -> Result<Serving> {
        self.serve_driven(driven(transport), caller)
    }

    fn serve_driven(&self, mut transport: Box<dyn DrivenTransport>, mut caller: Caller) -> Result<Serving> {
        self.start()?;
        caller.extensions.insert(transport.kind());
        if let (Some(address), None) = (transport.peer_address(), caller.extensions.get::<PeerAddress>()) {
            caller.extensions.insert(PeerAddress(address));
        }
        let snapshot = self.snapshot();
        if let Some(log) = &snapshot.settings.message_log {
            transport = Box::new(LoggedTransport::new(log, Side::Server, transport));
        }
        transport.limit_messages(snapshot.service.bounds().message_bytes);
        let stop = Arc::new(Stop::default());
        let connection = StreamConnection::new(self.clone(), transport, stop.clone()).known(caller);
        Ok(Serving::spawn(connection, ServingHandle::new(stop)))
    }

    /// Serves the standard streams of this process until the client disconnects.
    ///
    /// Output that the process prints goes to its standard error, so that it cannot corrupt the protocol. A program that can also
    /// serve HTTP uses [`run`](Self::run).
    #[cfg(feature = "stdio")]
    pub async fn serve_stdio(&self) -> Result<()> {
        self.serve(crate::transport::Stdio::new()?)?.wait().await.map(drop)
    }

    /// Returns a connection to this server within the process, for a client.
    pub fn in_process(&self) -> Result<Memory> {
        let (ours, theirs) = memory();
        drop(self.serve(ours)?);
        Ok(theirs)
    }
}
