//! Tasks, as conversations: one tool, run plainly and as a task, in every era and over every transport.

#[cfg(feature = "client")]
mod client;
mod many;
#[cfg(feature = "http-server")]
mod ownership;
mod restart;
mod same_tool;
mod wire;
