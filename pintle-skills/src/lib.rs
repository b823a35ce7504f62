//! Skills and apps of Model Context Protocol servers and hosts, for [`pintle`].
//!
//! # Skills
//!
//! A skill is a directory with a file `SKILL.md`, whose front matter has its name and its description, and whatever files it refers to.
//! [`Skills`] serves a folder of them, with the digest of every file. [`SkillReader`] lists them for a host, and reads their files,
//! each of which is checked against its digest. This is the extension `io.modelcontextprotocol/skills`. Clients do not declare it.
//!
//! ```
//! # #[cfg(all(feature = "client", feature = "server"))]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use pintle::{Client, Server};
//! use pintle_skills::{SkillReader, Skills};
//!
//! let skill = "---\nname: greet\ndescription: Greets people.\n---\n\nSay hello.\n";
//! let skills = Skills::from_files("skill://", [("greet/SKILL.md", skill)])?;
//! let server = Server::new("manners", "1.0.0").with(skills);
//!
//! let connection = Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
//! let reader = SkillReader::new(&connection)?;
//! let listed = reader.list().await?;
//! assert_eq!(listed[0].description(), "Greets people.");
//! let greet = reader.load(&listed[0]).await?;
//! assert_eq!(greet.instructions(), "Say hello.\n");
//! # Ok(()) }
//! # #[cfg(not(all(feature = "client", feature = "server")))] fn main() {}
//! ```
//!
//! # Apps
//!
//! An app is an HTML page that a server offers, and a host shows with the results of its tools: [`apps`].
//!
//! ```
//! # #[cfg(feature = "server")] {
//! use pintle::{Server, server::tool};
//! use pintle_skills::apps::{App, Apps};
//!
//! let clock = App::new("ui://clock/face", "clock", "<!doctype html><p>noon</p>")
//!     .tool(tool("show_clock", || async { "It is noon." }).description("Shows a clock."));
//! Server::new("clock", "1.0.0").with(Apps::new().app(clock)).check().unwrap();
//! # }
//! ```
//!
//! # Features
//!
//! | feature | adds | by default |
//! |---|---|---|
//! | `server` | offering skills and apps | yes |
//! | `client` | using skills, and declaring that a host renders apps | yes |
//!
//! The pages `docs/skills.md` and `docs/apps.md` of the repository are the guide.

#[cfg(any(feature = "client", feature = "server"))]
pub mod apps;
#[cfg(feature = "client")]
mod differences;
mod entry;
mod error;
#[cfg(feature = "server")]
mod extension;
#[cfg(feature = "server")]
mod folder;
#[cfg(all(doctest, feature = "client", feature = "server"))]
mod guide;
#[cfg(feature = "client")]
mod reader;
#[cfg(any(feature = "client", feature = "server"))]
mod wire;

pub use entry::{SkillEntry, SkillFile, SkillFiles};
pub use error::SkillError;
#[cfg(feature = "server")]
pub use extension::Skills;
#[cfg(feature = "client")]
pub use reader::{Skill, SkillLimits, SkillReader};

/// The name of the extension of skills.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
