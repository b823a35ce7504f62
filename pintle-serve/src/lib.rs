//! Tools that are configured, not programmed: a command, an HTTP request or a function of a worker, its arguments with their types, and
//! limits.
//!
//! [`ToolEntry`] is a tool as a file describes it; anything that `serde` reads can be that file. [`ServedTools`] checks the entries and makes
//! routes for a [`Server`](pintle::Server) of them. `pintle serve` of the command line is this crate with a file.
//!
//! A value of a call is never a part of a text that a shell reads, and becomes no option of a program unless the entry says so:
//! [`ToolEntry::command`] has the places of a command.
//!
//! ```
//! use std::{collections::BTreeMap, path::Path};
//!
//! use pintle::Server;
//! use pintle_serve::{ServedTools, ToolEntry};
//!
//! # #[cfg(unix)]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let entries: BTreeMap<String, ToolEntry> = serde_json::from_str(r#"{
//!     "greet": {
//!         "description": "Greets somebody.",
//!         "command": ["echo", "Hello, {name}!"],
//!         "arguments": {"name": "string"}
//!     }
//! }"#)?;
//! let tools = ServedTools::new(&entries, Path::new("."))?;
//! let server = tools.routes().into_iter().fold(Server::new("greeter", "1.0.0"), Server::tool);
//! # #[cfg(feature = "client")] {
//! let client = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
//! let greeted = client.call_tool("greet", serde_json::json!({"name": "$(id)"})).await?;
//! assert_eq!(greeted.text(), "Hello, $(id)!\n");
//! # }
//! # drop(server);
//! # Ok(()) }
//! # #[cfg(not(unix))] fn main() {}
//! ```

mod argument;
mod command;
mod disk;
mod draft;
mod entry;
mod environment;
mod fault;
mod folders;
#[cfg(doctest)]
mod guide;
mod once;
mod one_line;
mod output;
mod plan;
mod prompt;
mod questions;
mod request;
mod resource;
mod secret;
mod served;
mod text;
mod turn;
mod units;
mod worker;

pub use argument::ArgumentEntry;
pub use command::{CommandPlan, quoted};
pub use disk::{read_file, read_own_file, written_by_others};
pub use draft::{HelpDraft, ImportDraft};
pub use entry::{CommandEntry, RequestEntry, ToolEntry};
pub use fault::{CallFault, EntryFault};
pub use folders::ServedFolders;
pub use one_line::parse_one_line;
pub use output::OutputKind;
pub use plan::CallPlan;
pub use prompt::{PromptEntry, prompt_routes};
pub use resource::{ResourceEntry, ServedResources};
pub use secret::{SecretError, SecretSource, SecretValue};
pub use served::ServedTools;
pub use units::duration;
pub use worker::{ServedWorkers, WorkerEntry, WorkerPlan};
