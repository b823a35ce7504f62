use std::fmt::Write as _;

use pintle::types::JsonObject;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The name of the file that makes a directory a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// A skill, as a server lists it.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SkillEntry {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The front matter of its `SKILL.md`, with all members.
    pub frontmatter: JsonObject,
    /// The files.
    #[serde(default)]
    pub resources: SkillFiles,
    /// Members that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

/// The files of a skill.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SkillFiles {
    /// All files, with their digests.
    Listed(Vec<SkillFile>),
    /// The files are generated: they are not listed, and have no digests.
    Dynamic,
    /// Neither of both. Such a skill must not be loaded.
    #[default]
    Invalid,
}

/// A file of a skill.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SkillFile {
    /// The URI.
    pub uri: String,
    /// `sha256:` and the digest in lower-case hexadecimal digits.
    pub digest: String,
    /// The size in bytes.
    pub size: u64,
}

impl SkillEntry {
    #[cfg(feature = "server")]
    pub(crate) fn new(uri: String, frontmatter: JsonObject, files: Vec<SkillFile>) -> Self {
        Self { uri, frontmatter, resources: SkillFiles::Listed(files), extra: JsonObject::new() }
    }

    /// Returns the name. It is a label: skills of two servers may have the same.
    pub fn name(&self) -> &str {
        self.frontmatter.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the description.
    pub fn description(&self) -> &str {
        self.frontmatter.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the URI of the directory of the skill.
    pub fn directory(&self) -> &str {
        let directory = self.uri.strip_suffix(SKILL_FILE).unwrap_or(&self.uri);
        directory.strip_suffix('/').unwrap_or(directory)
    }

    /// Returns a listed file.
    pub fn file(&self, uri: &str) -> Option<&SkillFile> {
        match &self.resources {
            SkillFiles::Listed(files) => files.iter().find(|file| file.uri == uri),
            _ => None,
        }
    }

    /// Returns a digest of all files, to bind the approval of a user to. It differs if any file differs. `None` for skills whose files
    /// are not listed: an approval of those cannot be kept.
    ///
    /// Keep it with the name that the host has given the server, and the URI.
    pub fn fingerprint(&self) -> Option<String> {
        let SkillFiles::Listed(files) = &self.resources else { return None };
        let mut lines: Vec<_> =
            files.iter().map(|file| format!("{:?} {:?} {}\n", file.uri, file.digest, file.size)).collect();
        lines.sort();
        Some(sha256(lines.concat().as_bytes()))
    }
}

impl SkillFile {
    #[cfg(feature = "server")]
    pub(crate) fn of(uri: &str, bytes: &[u8]) -> Self {
        Self { uri: uri.to_owned(), digest: sha256(bytes), size: bytes.len() as u64 }
    }

    /// Returns why these bytes are not the file, if they are not.
    #[cfg(feature = "client")]
    pub(crate) fn difference(&self, bytes: &[u8]) -> Option<String> {
        if self.size != bytes.len() as u64 {
            return Some(format!("it has {} bytes, and {} were listed", bytes.len(), self.size));
        }
        (self.digest != sha256(bytes)).then(|| "its digest differs".to_owned())
    }
}

/// Returns the digest of a file as it is listed.
fn sha256(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    let mut text = "sha256:".to_owned();
    for byte in context.finish().as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Serialize for SkillFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Listed(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str("dynamic"),
            Self::Invalid => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for SkillFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(word) if word == "dynamic" => Self::Dynamic,
            files @ Value::Array(_) => Vec::deserialize(files).map_or(Self::Invalid, Self::Listed),
            _ => Self::Invalid,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_kinds_of_files_survive_and_anything_else_is_invalid() {
        let entry = |resources: Value| -> SkillEntry {
            serde_json::from_value(
                json!({"uri": "skill://a/SKILL.md", "frontmatter": {}, "resources": resources}),
            )
            .unwrap()
        };
        assert_eq!(entry(json!("dynamic")).resources, SkillFiles::Dynamic);
        assert_eq!(entry(json!("static")).resources, SkillFiles::Invalid);
        assert_eq!(entry(json!([{"uri": "skill://a/SKILL.md"}])).resources, SkillFiles::Invalid);
        let listed = entry(json!([{"uri": "u", "digest": "d", "size": 1}]));
        assert_eq!(
            serde_json::to_value(&listed).unwrap()["resources"],
            json!([{"uri": "u", "digest": "d", "size": 1}])
        );
        let absent: SkillEntry =
            serde_json::from_value(json!({"uri": "skill://a/SKILL.md", "frontmatter": {}, "x/y": [1]}))
                .unwrap();
        assert_eq!(
            (absent.resources.clone(), absent.extra["x/y"].clone()),
            (SkillFiles::Invalid, json!([1]))
        );
        assert_eq!(absent.directory(), "skill://a");
    }

    #[test]
    fn a_fingerprint_depends_on_every_file_and_not_on_their_order() {
        let entry = |files: Value| -> SkillEntry {
            serde_json::from_value(json!({"uri": "u/SKILL.md", "frontmatter": {}, "resources": files}))
                .unwrap()
        };
        let (a, b) =
            (json!({"uri": "a", "digest": "1", "size": 1}), json!({"uri": "b", "digest": "2", "size": 1}));
        let both = entry(json!([a, b])).fingerprint().unwrap();
        assert_eq!(entry(json!([b, a])).fingerprint().unwrap(), both);
        assert_ne!(entry(json!([a])).fingerprint().unwrap(), both);
        assert_eq!(entry(json!("dynamic")).fingerprint(), None);
    }
}
