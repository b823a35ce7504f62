//! Layers around the messages of a client.
//!
//! Every message of a client passes its layers. `Next` is built once; each message is a `Cx` with a `Perform`, which has it take effect. A
//! request of a handle is one `SentRequest` with its connection and options, which no step copies. It runs in the future of its caller
//! (`connection/sending.rs`), around `perform`, so that the cache, the policy, rounds, retries and the output check are inside. `perform`
//! (`connection/perform.rs`) goes from step to step: prepare, exchange, answer what the server needs first, done. A forwarded request
//! (`connection/forward.rs`) has one exchange.
//!
//! Messages that a connection sends by itself run in its driver (`driver/own_messages.rs`). Input requests pass the layers in the task of
//! their handler, notifications of a call in the future of its caller, and others in the callback queue, in order, whose task starts with
//! the first (`state/received.rs`, `callbacks.rs`).

mod cx;
mod next;
mod spans;

pub use cx::Cx;
pub use next::{Next, around};

pub(in crate::client) use cx::{CxOrigin, MessageFuture, Perform};
pub(in crate::client) use next::{innermost, result};
pub(in crate::client) use spans::{in_span, question_span, request_span};
