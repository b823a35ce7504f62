//! Connections to servers and proxies, and the bodies that pass over them.

mod address;
mod body;
mod connector;
mod limits;
mod names;
mod pool;
mod proxy;
mod service;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;

pub use body::Body;
pub use limits::Limits;
pub use proxy::Proxy;

pub(super) use address::Address;
pub(super) use body::{Answer, Uncollected};
pub(super) use connector::{Encrypt, pool};
pub(super) use limits::AnswerLimit;
pub(super) use names::Allowed;
pub(super) use pool::{Pool, Unconnected};
pub(super) use service::{Erased, Fetch, Sender};

/// What encrypts, if that is built in.
#[allow(unused_mut, clippy::let_and_return, reason = "only the feature `tls` puts anything there")]
pub(super) fn encryption() -> Option<Arc<dyn Encrypt>> {
    let mut tls: Option<Arc<dyn Encrypt>> = None;
    #[cfg(feature = "tls")]
    tls.replace(Arc::new(tls::Tls::default()));
    tls
}
