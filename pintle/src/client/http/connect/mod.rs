//! Connections to servers and proxies, and the bodies that pass over them.

mod address;
mod body;
mod connector;
mod limits;
mod pool;
mod proxy;
mod relay_waker;
mod resolver;
mod sender;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;

pub use body::{Body, ResponseStream};
pub use limits::Limits;
pub use proxy::Proxy;

pub(super) use address::Address;
pub(super) use body::{BoxError, CollectError, ResponseBody};
pub(super) use connector::{Encrypt, pool};
pub(super) use limits::AnswerLimit;
pub(super) use pool::{ConnectError, ExchangeKind, Pool};
pub(super) use resolver::AddressFilter;
pub(super) use sender::{Erased, Fetch, HttpSender};

/// Returns the TLS implementation, if the feature `tls` is enabled.
#[allow(unused_mut, clippy::let_and_return, reason = "only the feature `tls` puts anything there")]
pub(super) fn encryption() -> Option<Arc<dyn Encrypt>> {
    let mut tls: Option<Arc<dyn Encrypt>> = None;
    #[cfg(feature = "tls")]
    tls.replace(Arc::new(tls::Tls::default()));
    tls
}
