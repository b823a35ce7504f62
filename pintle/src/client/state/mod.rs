//! What the driver of a connection and its handles share.

mod callbacks;
mod hub;
mod mailbox;
mod settings;
mod shared;
mod signals;

pub use hub::Event;

pub(super) use callbacks::CallbackEvent;
pub(super) use hub::EventQueue;
pub(super) use mailbox::{CallFailure, CallReceiver, CallSender, CallUpdate, mailbox};
pub(super) use settings::Settings;
pub(super) use shared::{Facts, PageExtent, Shared};
