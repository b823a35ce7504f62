//! Shared by client and server: restricted requests, secrets, keys, and the authentication of clients.

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
