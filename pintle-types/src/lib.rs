//! The nouns of the Model Context Protocol: what a message means, never how an era carries it.

mod error;
mod frame;
mod id;
mod json;
mod malformed;
mod message;
mod meta;
pub mod method;
mod plain_error;
mod raw;
pub mod schema;
mod usual;

pub use error::{ErrorCode, RpcError};
pub use frame::Frame;
pub use id::RequestId;
pub use json::JsonObject;
pub use malformed::{Kind as MalformedKind, Malformed};
pub use message::{Message, Notification, Request, Response};
pub use meta::{Meta, MetaError, MetaKeyError, TraceContext, TraceParent, TraceParentError, keys};
pub use plain_error::plain_error;
pub use raw::{Printing, RawObject};
pub use serde_json::value::RawValue;
