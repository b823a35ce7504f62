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

/// Decides which addresses may be connected to.
pub(in crate::client::http) type AddressFilter = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Resolves hosts and removes addresses that are not allowed. The connection uses the checked addresses, so DNS rebinding has no
/// effect.
#[derive(Clone)]
pub(in crate::client::http) struct Resolver {
    system: GaiResolver,
    allowed: Option<AddressFilter>,
}

impl Resolver {
    pub(in crate::client::http) fn new(allowed: Option<AddressFilter>) -> Self {
        Self { system: GaiResolver::new(), allowed }
    }

    /// Whether a host is an address literal that is not allowed. Literals are not resolved.
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

/// An error that a retry would not change.
pub(in crate::client::http) fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "connections to its address are not allowed")
}
