//! HTTP APIs of a file, whose operations are tools.

mod credential;
mod entry;
mod loaded;
mod provider;

pub(super) use entry::{ApiEntry, OpenFailure};
pub(super) use loaded::LoadedApi;
pub(super) use provider::BackendProvider;
