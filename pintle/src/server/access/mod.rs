//! The caller of a request, and what it may see and call.

pub(crate) mod authenticated;
pub(crate) mod caller;
pub(crate) mod principal;
pub(crate) mod required;
pub(crate) mod scope;
