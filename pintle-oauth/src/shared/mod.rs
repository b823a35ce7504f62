//! What both halves need: requests that go only where they may, secrets, keys, and how a client proves itself.

pub(crate) mod address;
pub(crate) mod clock;
pub(crate) mod form;
pub(crate) mod identity;
pub(crate) mod jwt;
pub(crate) mod metadata;
pub(crate) mod noise;
pub(crate) mod reach;
pub(crate) mod registered;
pub(crate) mod scope;
pub(crate) mod secret;
pub(crate) mod web;
