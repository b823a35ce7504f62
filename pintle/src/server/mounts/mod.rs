//! Providers around other providers: prefixes, edited entries, search.

pub(crate) mod mount;
pub(crate) mod search;
pub(crate) mod transform;
