//! Configuration files that hosts write: `mcpServers` and its dialects.
//!
//! [`ConfigFile`] reads a file, [`locations`] lists where hosts keep theirs, [`ServerEntry::connect`] connects to a server, and
//! [`ConfigEdit`] adds and removes one.

mod edit;
mod entry;
mod env_file;
mod error;
mod file;
mod location;
mod read_entry;
mod resolve;
mod template;
mod tree;
mod variables;

pub use edit::{ConfigEdit, EditPreview, EditedFile, NewServer};
pub use entry::{EntryTransport, RemoteEntry, RemoteKind, ServerEntry, StdioEntry, ToolFilter};
pub use error::{ConfigError, ConfigErrorKind, Source};
pub use file::{ConfigFile, Dialect, Input, read_text};
pub use location::{Directories, Host, Location, Platform, Scope, locations};
pub use resolve::{RemoteServer, ResolvedServer, StdioServer};
pub use template::Template;
pub use variables::Variables;
