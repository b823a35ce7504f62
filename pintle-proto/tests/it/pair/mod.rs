//! A client engine and a server engine that talk to each other, in bytes and in virtual time.
//!
//! ```text
//! engines the two of them, the wire between them and the clock
//! client  drives the client's engines and answers for the user
//! server  drives the server's engine and polls its handlers
//! shop    what the server does, written once for every revision
//! ```

#![expect(clippy::needless_pass_by_value, reason = "literal JSON reads better without `&`")]

mod asking;
mod cache;
mod client;
mod engines;
mod features;
mod matrix;
#[cfg(feature = "next-revision")]
mod next_revision;
mod server;
mod shop;
mod state;
mod trouble;
mod wire;

const R1: &str = "2024-11-05";
const R2: &str = "2025-03-26";
const R3: &str = "2025-06-18";
const R4: &str = "2025-11-25";
const R5: &str = "2026-07-28";

const SESSIONS: &[&str] = &[R4, R3, R2, R1];
const ALL: &[&str] = &[R5, R4, R3, R2, R1];

/// The revision that does not exist.
#[cfg(feature = "next-revision")]
const NEXT: &str = "2099-01-01";

/// The revision of that name, drafts included.
fn revision(name: &str) -> pintle_proto::Revision {
    #[cfg(feature = "next-revision")]
    if name == NEXT {
        return pintle_proto::Revision::NEXT;
    }
    name.parse().unwrap()
}

/// The revision whose features this one has: what differs in a draft is told by its own tests.
fn like(revision: pintle_proto::Revision) -> &'static str {
    ALL.iter().copied().find(|name| *name == revision.as_str()).unwrap_or(R5)
}
