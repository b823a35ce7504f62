//! Notifications of changes to what a server offers.
//!
//! A [`ChangeHub`] has one [`ChangeInbox`] for each connection, session and subscription. An inbox merges the changes that come
//! while nobody reads it; a [`Recipient`] turns them into the notifications that its client wants and may see.
#![cfg_attr(not(feature = "client"), allow(dead_code, unused_imports, reason = "only relays select inboxes"))]

mod hub;
mod inbox;
mod link;
pub(crate) mod notice;
mod notice_queue;
mod owner;

pub(crate) use self::{
    hub::ChangeHub,
    inbox::ChangeInbox,
    link::ChangeLink,
    owner::{Audience, InboxOwner, OwnedPrincipal},
};
pub(crate) use super::core::provider::recipient::Recipient;
