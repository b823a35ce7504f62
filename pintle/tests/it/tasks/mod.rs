//! Tasks, as conversations: one tool, run plainly and as a task, in every era and over every transport.

#[cfg(feature = "client")]
mod answers;
#[cfg(feature = "client")]
mod client;
mod limits;
mod many;
mod mounted;
#[cfg(feature = "http-server")]
mod ownership;
pub(crate) mod restart;
mod same_tool;
mod shared;
mod wire;
