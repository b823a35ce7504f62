//! The types of the Model Context Protocol: JSON-RPC messages, params, results and the objects in them.

mod common;
mod envelope;
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

pub use error::{ErrorCode, RpcError};
pub use frame::Frame;
pub use id::RequestId;
pub use json::JsonObject;
pub use malformed::{Malformed, MalformedKind};
pub use message::{Message, Notification, Request, Response};
pub use meta::{Meta, MetaError, MetaKeyError, MetaValue, TraceContext, TraceParent, TraceParentError, keys};
pub use plain_error::plain_error;
pub use raw::{RawObject, RawObjectBuilder};
pub use serde_json::value::RawValue;
