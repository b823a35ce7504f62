//! The core of a server: what it offers, how an entry is found, judged and handled, and what runs a call.
//!
//! Its modules may use each other. What lies around it (`stream`, `http`, `gates`, `mounts`, `listen`) imports it, and it imports none
//! of these.

pub(crate) mod catalogue;
pub(crate) mod cx;
pub(crate) mod dispatch;
pub(crate) mod driver;
pub(crate) mod gate;
pub(crate) mod handler;
pub(crate) mod hooks;
pub(crate) mod lookup;
pub(crate) mod provider;
pub(crate) mod refused;
pub(crate) mod request_uri;
pub(crate) mod result_filter;
pub(crate) mod scope;
pub(crate) mod server;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod shown;
pub(crate) mod snapshot;
pub(crate) mod subscription;
pub(crate) mod unread_lists;
pub(crate) mod weak;
