//! The locks and atomics of hand-written wakers: those of the standard library here, those of loom in `loom/`.

pub(crate) use std::sync::Mutex;
#[cfg(feature = "http-client")]
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
