//! Relays: a server that another server handles the calls of.
//!
//! A [`Relay`] forwards calls of its clients to a server behind it, over a [`Connection`](pintle::Connection). It translates between
//! the eras: a client with a session can use a server without sessions, and the reverse. Arguments and results are not validated
//! and not changed.
//!
//! # Questions during a call
//!
//! | client | server behind | a question of the server |
//! |---|---|---|
//! | session | session | is sent to the client as a request, and its answer back |
//! | session | stateless | is sent to the client as a request; the call is repeated with the answers |
//! | stateless | stateless | ends the round; the next one is passed on, with the state of the server |
//! | stateless | session | ends the round; the call waits in the relay until the next one brings the answers |
//!
//! A question that the client of the call did not declare to answer is refused.

mod calls;
mod declared;
mod hops;
mod link_state;
mod lock;
mod meta;
mod own_tasks;
mod pairing;
mod provider;
mod random;
mod relay;
mod request;
mod subscription;
mod tasks;
mod upstream;

pub use relay::Relay;
