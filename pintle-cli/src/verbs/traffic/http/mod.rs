//! Serving HTTP to clients on this machine.

mod body;
mod listen;
mod service;

pub(super) use body::ServedBody;
pub(super) use listen::ListenArgs;
pub(super) use service::{HttpService, refused};
