//! One call, from its dispatch to its outcome, on any transport.

pub(crate) mod around;
#[cfg(feature = "logging")]
pub(crate) mod current;
pub(crate) mod cx;
pub(crate) mod dispatch;
pub(crate) mod elicit;
pub(crate) mod layer;
#[cfg(feature = "logging")]
pub mod logging;
#[cfg(feature = "http-server")]
pub(crate) mod outbox;
pub(crate) mod port;
pub(crate) mod questions;
pub(crate) mod queue;
pub(crate) mod rate;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod seal;
