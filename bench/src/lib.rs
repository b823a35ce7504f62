//! The measured work, as functions of a count; the measured servers; and the requests to them.

pub mod client;
pub mod drive;
pub mod full;
pub mod gateway;
pub mod http;
pub mod limit;
pub mod pair;
pub mod protocol;
pub mod relay;
pub mod served;
pub mod server;
pub mod tasks;
pub mod typed;
pub mod wire;
