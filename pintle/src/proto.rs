//! Names of the protocol engine that occur in this crate's API.
//!
//! The engine itself, without a runtime, is the crate `pintle-proto`.

pub use pintle_proto::{
    Facts, Limits, Peer, Revision, TaskKind, UnknownRevision, Violation, server::SessionRecord,
};

/// The rules of HTTP: which hosts and origins are allowed, and how a request is refused.
pub mod http {
    pub use pintle_proto::http::{
        Guard, Head, MCP_PROTOCOL_VERSION, Refusal, Streams, adds_to_granted, same_origin,
    };
}

/// Event streams, for tests that read the responses of a server themselves.
pub mod sse {
    pub use pintle_proto::sse::{DecodeError, Decoder, Event};
}
