//! Notifications of changes to what a server offers.
//!
//! A [`ChangeHub`] has one [`ChangeInbox`] for each connection, session and subscription. An inbox merges the changes that come
//! while nobody reads it; a [`Recipient`] turns them into the notifications that its client wants and may see.

mod hub;
mod inbox;
mod link;
pub(crate) mod notice;
mod notice_queue;
mod owner;

pub use self::owner::{Audience, OwnedPrincipal, Subscriber};
pub(crate) use self::{hub::ChangeHub, inbox::ChangeInbox, link::ChangeLink};
pub(crate) use super::core::provider::recipient::Recipient;
