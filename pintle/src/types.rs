//! The nouns of the protocol: JSON-RPC messages and errors, and the types of the schema.
//!
//! They are defined in the crate `pintle-types`, which also has the parser for those who write a gateway or a registry.

pub use pintle_types::{
    ErrorCode, JsonObject, Message, Meta, MetaError, MetaKeyError, MetaValue, Notification, RawObject,
    RawValue, Request, RequestId, Response, RpcError, TraceContext, TraceParent, TraceParentError, keys,
    method, plain_error, schema,
};
