//! The nouns of the Model Context Protocol: what a message means, never how an era carries it.

mod error;
mod id;

pub use error::{ErrorCode, RpcError};
pub use id::RequestId;
pub use serde_json::value::RawValue;
