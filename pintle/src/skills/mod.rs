//! Skills: folders with instructions for a model, which servers offer and hosts load when they are needed.
//!
//! A skill is a directory with a file `SKILL.md`, whose front matter has its name and its description, and whatever files it refers to.
//! [`Skills`] serves a folder of them, with the digest of every file. [`SkillReader`] lists them for a host, and reads their files,
//! each of which is checked against its digest.
//!
//! This is the extension `io.modelcontextprotocol/skills`, made of the public API for extensions. Clients do not declare it.
//!
//! ```
//! # #[cfg(all(feature = "client", feature = "server"))]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use pintle::{Client, Server, skills::{SkillReader, Skills}};
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

mod entry;
mod error;
#[cfg(feature = "server")]
mod extension;
#[cfg(feature = "server")]
mod folder;
mod front_matter;
#[cfg(feature = "client")]
mod reader;

pub use entry::{SkillEntry, SkillFile, SkillFiles};
pub use error::SkillError;
#[cfg(feature = "server")]
pub use extension::Skills;
#[cfg(feature = "client")]
pub use reader::{Skill, SkillLimits, SkillReader};

/// The name of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The name of the file that makes a directory a skill.
const SKILL_FILE: &str = "SKILL.md";
/// The media type of directories.
#[cfg(feature = "server")]
const DIRECTORY_TYPE: &str = "inode/directory";
/// The limit of files of one skill that every host supports.
const MAX_FILES: usize = 512;
/// The limit of bytes of one skill that every host supports.
const MAX_BYTES: u64 = 16 << 20;

mod wire {
    //! The methods, and their params and results.

    use pintle_types::schema::Resource;
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    pub(super) const LIST: &str = "skills/list";
    pub(super) const GET: &str = "skills/get";
    pub(super) const READ_DIRECTORY: &str = "resources/directory/read";
    /// The member of the settings that tells whether directories can be read.
    pub(super) const DIRECTORY_READ: &str = "directoryRead";

    /// A request for a page.
    #[derive(Default, Deserialize, Serialize)]
    pub(super) struct ListParams {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) cursor: Option<String>,
    }

    /// A request for a skill, or for a page of a directory.
    #[derive(Deserialize, Serialize)]
    pub(super) struct UriParams {
        pub(super) uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) cursor: Option<String>,
    }

    /// A page of skills. They are decoded one by one: a malformed one does not hide the others.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[cfg(feature = "client")]
    pub(super) struct ListResult {
        pub(super) skills: Vec<Value>,
        pub(super) next_cursor: Option<String>,
    }

    /// One skill.
    #[derive(Deserialize)]
    #[cfg(feature = "client")]
    pub(super) struct GetResult {
        pub(super) skill: super::SkillEntry,
    }

    /// A page of a directory.
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct DirectoryResult {
        pub(super) resources: Vec<Resource>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) next_cursor: Option<String>,
    }

    /// Returns a result with its cache hints.
    #[cfg(feature = "server")]
    pub(super) fn cached(mut result: Value, hint: Option<&pintle_proto::server::CacheHint>) -> Value {
        if let Some(hint) = hint {
            result["ttlMs"] = hint.ttl_ms.into();
            result["cacheScope"] = serde_json::to_value(&hint.scope).unwrap_or_default();
        }
        result
    }
}
