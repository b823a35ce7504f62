//! The tasks of [`pintle`] servers in an SQLite file, so that they survive a restart.
//!
//! ```
//! use pintle::{Server, server::{StateKeys, tool}};
//! use pintle_tasks::Tasks;
//! use pintle_sqlite::SqliteTaskStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("pintle-sqlite-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("tasks.db");
//! // The key is a secret of the server: what is in the file is sealed with it.
//! let server = Server::new("shop", "1.0.0")
//!     .state_keys(StateKeys::from([7; 32]))
//!     .with(Tasks::new().store(SqliteTaskStore::open(&path)?))
//!     .tool(tool("order", || async { "ordered" }).task("optional"));
//! server.check()?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(()) }
//! ```
//!
//! Several processes of one machine may share a file. The page `docs/tasks.md` of the repository says what holds after a restart.

mod schema;
mod store;

pub use store::SqliteTaskStore;
