//! Tasks: calls of tools that go on after their response.
//!
//! | | |
//! |---|---|
//! | a server whose tools may run as tasks | `Server::with(Tasks::new())` and `ToolRoute::task` |
//! | a handler that becomes a task at some point | `Cx::detach` |
//! | a client that waits for the results of tasks | `Client::with(TaskPolling::new())` |
//! | a client that wants the task itself | `Call::start` and `TaskHandle` |
//! | a store of your own | `TaskStore`, checked by `pintle_testing::kits::tasks` |
//!
//! There are two kinds of tasks on the wire: those of 2025-11-25, and those of the extension for later revisions. A server and a client
//! have both, and the code that uses them is the same.

#[cfg(feature = "server")]
mod clock;
#[cfg(feature = "server")]
mod extension;
#[cfg(feature = "client")]
mod handle;
#[cfg(feature = "server")]
mod host;
#[cfg(feature = "server")]
mod keeper;
#[cfg(feature = "server")]
mod memory;
#[cfg(feature = "server")]
mod methods;
#[cfg(feature = "server")]
mod owner;
#[cfg(feature = "client")]
mod polling;
#[cfg(feature = "server")]
mod printed_record;
#[cfg(feature = "server")]
mod provided;
#[cfg(feature = "server")]
mod random;
#[cfg(feature = "server")]
mod record;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "server")]
mod running;
#[cfg(feature = "server")]
mod saving;
#[cfg(feature = "server")]
mod store;
#[cfg(feature = "server")]
mod wire;

#[cfg(feature = "server")]
pub use extension::{Tasks, requested_ttl};
#[cfg(feature = "client")]
pub use handle::{TaskHandle, TaskState};
#[cfg(feature = "server")]
pub use memory::MemoryTaskStore;
#[cfg(feature = "client")]
pub use polling::TaskPolling;
#[cfg(feature = "server")]
pub use provided::ProvidedTasks;
#[cfg(feature = "client")]
pub use request::TaskRequests;
#[cfg(feature = "server")]
pub use store::{StoredTask, TaskFuture, TaskQuota, TaskStore, Updated};

/// The name of the tasks extension.
pub const EXTENSION: &str = pintle::types::method::tasks_extension::NAME;

/// The `resultType` of a call that became a task.
#[cfg(any(feature = "client", feature = "server"))]
const RESULT_TYPE: &str = "task";
