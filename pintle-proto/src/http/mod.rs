//! HTTP as pure functions of head and body: what is let in, what is refused and in which words, and what a client sends.
//!
//! A server asks in this order: [`open`] before it reads a body, [`route`] when it knows what the body is, and
//! [`HeaderParams::check`] once it has found the tool. Each refusal is a [`Refusal`] that is ready to be sent.
//! A client dresses what it sends with [`dress`] and learns from [`Probed`] what the first answer says about the
//! server; [`Streams`] says to both how event streams go.

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

pub mod dress;
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
pub use open::{Endpoint, Opening, is_session_id, open};
pub use origin::Guard;
pub use param::BadArgument;
pub use probe::Probed;
pub use refusal::Refusal;
pub use route::{Body, Post, RequestHead, check_session_version, route};
pub use served::Served;
pub use status::{adds_to_granted, session_status, stateless_status};
pub use streams::Streams;
pub use uri::{BadLocation, redirect, resolve_endpoint, same_origin};
