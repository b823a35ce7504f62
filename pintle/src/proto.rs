//! Names of the protocol engine that occur in this crate's API.
//!
//! The engine itself, without a runtime, is the crate `pintle-proto`.

pub use pintle_proto::{
    Facts, Limits, Part, Peer, RETRY_AFTER_MS, Revision, TaskKind, UnknownRevision, Violation,
    server::{Body, SessionRecord},
};

/// The rules of HTTP: which hosts and origins are allowed, and how a request is refused.
pub mod http {
    pub use pintle_proto::http::{
        Guard, Head, HeaderParams, MCP_NAME, MCP_PROTOCOL_VERSION, Refusal, Streams, adds_to_granted,
        name_in, same_origin,
    };
}

/// Event streams, for tests that read the responses of a server themselves.
pub mod sse {
    pub use pintle_proto::sse::{DecodeError, Decoder, Event};
}

/// The account of what is held for a client.
pub mod ledger {
    pub use pintle_proto::ledger::Charge;
}
