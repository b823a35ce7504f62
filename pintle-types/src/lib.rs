//! The nouns of the Model Context Protocol: what a message means, never how an era carries it.

mod error;
mod frame;
mod id;
mod message;
mod raw;

pub use error::{ErrorCode, RpcError};
pub use frame::Frame;
pub use id::RequestId;
pub use message::{Kind as MalformedKind, Malformed, Message, Notification, Request, Response};
pub use raw::RawObject;
pub use serde_json::value::RawValue;
