//! Kits: each checks what you wrote for a trait of `pintle`, and reports which sentences are not true of it.
//!
//! | for | run |
//! |---|---|
//! | a [`Transport`](pintle::transport::Transport) | [`transport::check`] |
//! | a [`Store`](pintle::server::store::Store) | [`store::check`] |
//! | a [`TaskStore`](pintle_tasks::TaskStore) | [`tasks::check`] |
//! | an `EventLog` (feature `http`) | `event_log::check` |
//! | `Nodes`, which carry messages between processes (feature `http`) | `nodes::check` |
//! | a `SharedStore`, which is all of them, with two services over it (feature `http`) | `fleet::check` |
//!
//! Each has a `check`, which opens what it checks once for every property and returns all that do not hold. Stores are
//! opened with two handles, as two processes have them: [`two_handles`] of one in memory. A property that hangs is given
//! up after a minute; run kits under real time.

#[cfg(feature = "http")]
pub mod event_log;
#[cfg(feature = "http")]
pub mod fleet;
mod harness;
#[cfg(feature = "http")]
pub mod nodes;
pub mod store;
pub mod tasks;
pub mod transport;

pub use harness::{Broken, two_handles};
