//! One call, from its start to its outcome, on any transport.
//!
//! A [`CallDriver`](call_driver::CallDriver) runs a call's handler. What the handler emits meanwhile goes to the call's
//! [`CallSink`](sink::CallSink), as a [`CallEvent`](sink::CallEvent).

pub(crate) mod batch;
pub(crate) mod call_driver;
pub(crate) mod context;
pub(crate) mod detached;
pub(crate) mod layer;
pub(crate) mod limit;
#[cfg(feature = "http-server")]
pub(crate) mod own_sink;
pub(crate) mod questions;
pub(crate) mod rate;
#[cfg(feature = "http-server")]
pub(crate) mod registry;
pub(crate) mod rerun;
pub(crate) mod run;
pub(crate) mod sink;
