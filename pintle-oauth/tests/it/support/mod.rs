//! Servers and networks that the tests share. None of these files holds a test.

pub(crate) mod notes;
pub(crate) mod subscriber;
pub(crate) mod token_file;
pub(crate) mod vault;
pub(crate) mod world;
