//! The state that the driver of a connection shares with its handles.

mod callbacks;
mod connection_state;
mod hub;
mod mailbox;
mod received;
mod settings;
mod signals;

pub use hub::Event;

pub(super) use callbacks::CallbackEvent;
pub(super) use connection_state::{ConnectionState, PageExtent, ServerFacts};
pub(super) use hub::EventQueue;
pub(super) use mailbox::{CallFailure, CallHandlers, CallReceiver, CallSender, CallUpdate, mailbox};
pub(super) use settings::ClientSettings;
