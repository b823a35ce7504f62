//! HTTP rules as pure functions of head and body: which requests are admitted, how the others are refused, and the
//! headers a client sends.
//!
//! A server calls, in this order: [`open`] before it reads a body, [`route`] when it has parsed the body, and
//! [`HeaderParams::check`] once it has found the tool. Each refusal is a [`Refusal`] that is ready to be sent. A client
//! takes the headers of its requests from [`headers`], and classifies the first response with [`Probed`]. [`Streams`]
//! describes for both how event streams are used.

mod head;
mod names;

mod accept;
mod origin;

mod open;
mod route;
mod served;

mod encoding;
mod mirror;

mod annotation;
mod argument;
mod param;

mod refusal;
mod status;

pub mod headers;
mod probe;
mod streams;
mod uri;

pub use accept::Accepts;
pub use annotation::{AnnotationFault, BadAnnotation, HeaderParam, HeaderParams, ParamKind};
pub use encoding::{Undecodable, decode_value, encode_value};
pub use head::Head;
pub use mirror::{NameSource, name_in, name_member};
pub use names::{
    LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, X_ACCEL_BUFFERING,
};
pub use open::{Endpoint, EndpointRequest, is_session_id, open};
pub use origin::Guard;
pub use param::BadArgument;
pub use probe::Probed;
pub use refusal::Refusal;
pub use route::{Post, PostBody, RequestHead, check_session_version, route};
pub use served::Served;
pub use status::{adds_to_granted, session_status, stateless_status};
pub use streams::Streams;
pub use uri::{BadLocation, redirect, resolve_endpoint, same_origin};
