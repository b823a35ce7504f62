//! The caller of a request, and the rights it needs to see and call entries of the catalogue.

pub(crate) mod authenticated;
pub(crate) mod caller;
pub(crate) mod peer_address;
pub(crate) mod principal;
pub(crate) mod required;
pub(crate) mod tls_facts;
