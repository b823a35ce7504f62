//! Parts of a host of Model Context Protocol servers: the configuration files that hosts share, several servers as one, and their
//! tools in the form that model APIs take.
//!
//! | task | item |
//! |---|---|
//! | read `mcpServers` and its dialects | [`config::ConfigFile`] |
//! | find the configuration files of hosts | [`config::locations`] |
//! | add a server to a host's file, or remove one | [`config::ConfigEdit`] |
//! | connect to all servers of a file | [`Group::open`] |
//! | use several servers as one | [`Group`] |
//! | offer tools to a model, and run what it calls | [`model`] |
//!
//! # Features
//!
//! | feature | adds | by default |
//! |---|---|---|
//! | `child` | servers that are started as child processes | yes |
//! | `http` | servers at a URL | yes |
//! | `toml` | Codex's configuration | yes |

pub mod config;
mod group;
#[cfg(all(doctest, feature = "child", feature = "http"))]
mod guide;
pub mod model;

pub use group::{Group, GroupChanges, GroupEvent, Listed, Listing, MemberState, Naming, Redial, Route};
