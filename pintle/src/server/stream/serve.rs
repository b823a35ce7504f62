//! From a server to a connection.

use std::sync::Arc;

use super::Connection;
use crate::{
    Result,
    server::{Caller, Server, Serving, serving::Stop},
    transport::{Memory, Transport, memory},
};

impl Server {
    /// Serves one connection in a task of its own.
    ///
    /// Whoever is at the other end of a transport that [is local](Transport::is_local) may do everything; on any other one
    /// it is anonymous, and may do nothing that something is [required](crate::server::ToolRoute::requires) for.
    pub fn serve(&self, transport: impl Transport) -> Result<Serving> {
        let caller = if transport.is_local() { Caller::local() } else { Caller::new() };
        self.serve_to(transport, caller)
    }

    /// The same, for somebody who is known: what `caller` says counts, whatever the transport.
    pub fn serve_to(&self, transport: impl Transport, caller: Caller) -> Result<Serving> {
        self.check()?;
        self.0.linted.call_once(|| self.lint().iter().for_each(|said| tracing::warn!("{said}")));
        let mut transport: Box<dyn Transport> = Box::new(transport);
        transport.limit_messages(self.state().service.bounds().message_bytes);
        let stop = Arc::new(Stop::default());
        let connection = Connection::new(self.clone(), transport, stop.clone()).known(caller);
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
