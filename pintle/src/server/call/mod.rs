//! One call, from its dispatch to its outcome, on any transport.
//!
//! A [`CallDriver`](driver::CallDriver) runs a call's handler. What the handler emits meanwhile goes to the call's
//! [`CallSink`](sink::CallSink), as a [`CallEvent`](sink::CallEvent).

pub(crate) mod batch;
pub(crate) mod caller_key;
pub(crate) mod context;
#[cfg(feature = "logging")]
pub(crate) mod current;
pub(crate) mod cx;
pub(crate) mod detached;
pub(crate) mod driver;
pub(crate) mod elicit;
pub(crate) mod layer;
pub(crate) mod limit;
#[cfg(feature = "logging")]
pub mod logging;
#[cfg(feature = "http-server")]
pub(crate) mod own_sink;
pub(crate) mod questions;
pub(crate) mod random;
pub(crate) mod rate;
#[cfg(feature = "http-server")]
pub(crate) mod registry;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod seal;
pub(crate) mod sink;
pub(crate) mod target;
