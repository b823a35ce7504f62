//! Calls that wait for input, between two commands: a file for each, which only its owner can read.

mod record;
mod store;

pub(crate) use record::SuspendedRecord;
pub(crate) use store::SuspendedStore;
