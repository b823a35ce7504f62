//! Forwarding: calls of one connection that are handled over another one.
//!
//! What a relay needs besides a [`Provider`](crate::server::Provider): the client side of a call ([`Downstream`]), requests to the
//! other server that are neither decoded nor validated ([`Connection::forward`](crate::Connection::forward)), and the recipients of
//! its changes ([`Subscriber`]). The crate `pintle-relay` is made of it.

#[cfg(feature = "server")]
mod downstream;
/// The keys of questions in sessions, which the protocol does not send there. A client that declares the extension gets them in the
/// metadata of questions of a server of this SDK.
pub mod question_keys {
    pub use crate::question_keys::{EXTENSION, META, is_wanted};
}

#[cfg(feature = "client")]
pub use crate::client::{
    asking::{ForwardQuestion, QuestionHandler, refuse_questions},
    connection::{ForwardEvent, ForwardRequest, Repetition},
};
#[cfg(feature = "server")]
pub use crate::server::changes::{Audience, OwnedPrincipal, Subscriber};
#[cfg(feature = "server")]
pub use crate::server::core::cx::caller_key::CallerKey;
pub use crate::transport::push_demand::PushDemand;
#[cfg(feature = "server")]
pub use downstream::Downstream;
#[cfg(feature = "client")]
pub use pintle_proto::client::{InputRequest, InputRequired, Rounds};
#[cfg(feature = "server")]
pub use pintle_proto::server::RelayedRound;
