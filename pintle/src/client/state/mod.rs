//! What the driver of a connection and its handles share.

mod hub;
mod mailbox;
mod notices;
mod settings;
mod shared;
mod signals;

pub use hub::Event;

pub(super) use hub::Queue;
pub(super) use mailbox::{Failure, Letter, Pending, Post, mailbox};
pub(super) use notices::Notice;
pub(super) use settings::Settings;
pub(super) use shared::{Extent, Facts, Shared};
