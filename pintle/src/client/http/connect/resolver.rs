use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

/// Which addresses may be connected to.
pub(in crate::client::http) type AddressFilter = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Finds the addresses of hosts, and leaves out those that are not allowed. It is asked for the very address that is
/// connected to, so a name that changes its mind in between gains nothing.
#[derive(Clone)]
pub(in crate::client::http) struct Resolver {
    system: GaiResolver,
    allowed: Option<AddressFilter>,
}

impl Resolver {
    pub(in crate::client::http) fn new(allowed: Option<AddressFilter>) -> Self {
        Self { system: GaiResolver::new(), allowed }
    }

    /// Whether this host is an address that is not allowed. Such a host is never asked for.
    pub(in crate::client::http) fn refuses(&self, host: &str) -> bool {
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        literal.is_ok_and(|address| self.allowed.as_ref().is_some_and(|allowed| !allowed(address)))
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, allowed) = (self.system.call(name), self.allowed.clone());
        Box::pin(async move {
            let mut found: Vec<SocketAddr> = found.await?.collect();
            if let Some(allowed) = allowed {
                found.retain(|address| allowed(address.ip()));
                if found.is_empty() {
                    return Err(refused());
                }
            }
            Ok(found.into_iter())
        })
    }
}

/// Trying again would change nothing.
pub(in crate::client::http) fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "its address is none that may be connected to")
}
