use base64::{Engine as _, engine::general_purpose::STANDARD};
use pintle::{
    Connection,
    types::schema::{Resource, ResourceBody},
};
use pintle_yaml::FrontMatter;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    EXTENSION, SkillEntry, SkillError, SkillFiles,
    differences::differences,
    entry::SKILL_FILE,
    wire::{self, DirectoryResult, GetResult, ListParams, ListResult, MAX_BYTES, MAX_FILES, UriParams},
};

/// Lists and reads the skills of a server. What it returns has been verified.
///
/// Skills are input of a stranger: show the user where one comes from, run nothing that it contains without approval, and load none
/// before it is needed. A digest tells that a file is the one that was listed, and not that it is harmless.
///
/// ```no_run
/// use pintle::Connection;
/// use pintle_skills::{SkillError, SkillReader};
///
/// async fn instructions(server: &Connection, name: &str) -> Result<Option<String>, SkillError> {
///     let reader = SkillReader::new(server)?;
///     let skills = reader.list().await?;
///     let Some(entry) = skills.iter().find(|entry| entry.name() == name) else { return Ok(None) };
///     // Ask the user here, and keep `entry.fingerprint()` with the approval.
///     Ok(Some(reader.load(entry).await?.instructions().to_owned()))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct SkillReader {
    connection: Connection,
    limits: SkillLimits,
    reads_directories: bool,
    allows_dynamic: bool,
}

/// The limits of a [`SkillReader`].
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SkillLimits {
    /// The skills of a list. 1,000 by default.
    pub skills: usize,
    /// The files of a skill. 512 by default.
    pub files: usize,
    /// The bytes of all files of a skill. 16 MiB by default.
    pub bytes: u64,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self { skills: 1000, files: MAX_FILES, bytes: MAX_BYTES }
    }
}

/// A skill whose `SKILL.md` has been read and verified.
#[derive(Clone, Debug)]
pub struct Skill {
    entry: SkillEntry,
    text: String,
    body_at: usize,
}

impl Skill {
    /// Returns the entry that it was verified against.
    pub fn entry(&self) -> &SkillEntry {
        &self.entry
    }

    /// Returns the whole `SKILL.md`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the `SKILL.md` without its front matter.
    pub fn instructions(&self) -> &str {
        &self.text[self.body_at..]
    }
}

impl SkillReader {
    /// Creates a reader for the skills of a server.
    ///
    /// # Errors
    ///
    /// The server does not declare skills.
    pub fn new(connection: &Connection) -> Result<Self, SkillError> {
        let declared = connection.capabilities().extensions;
        let settings = declared.as_ref().and_then(|declared| declared.get(EXTENSION));
        let settings = settings.ok_or(SkillError::Unsupported { what: "skills" })?;
        Ok(Self {
            connection: connection.clone(),
            limits: SkillLimits::default(),
            reads_directories: settings.get(wire::DIRECTORY_READ) == Some(&Value::Bool(true)),
            allows_dynamic: false,
        })
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(self, limits: SkillLimits) -> Self {
        Self { limits, ..self }
    }

    /// Allows skills whose files are generated, and cannot be verified.
    #[must_use]
    pub fn allow_dynamic(self) -> Self {
        Self { allows_dynamic: true, ..self }
    }

    async fn request<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize + Send,
    ) -> Result<R, SkillError> {
        Ok(self.connection.request(method, params).await?)
    }

    /// Lists the skills. No file is read. Entries that are malformed are left out, and logged; a server may have skills that it does
    /// not list.
    ///
    /// # Errors
    ///
    /// A request fails, or the list is longer than the limit.
    pub async fn list(&self) -> Result<Vec<SkillEntry>, SkillError> {
        let (mut skills, mut cursor): (Vec<SkillEntry>, Option<String>) = (Vec::new(), None);
        // A page may be empty, and cursors may go round in circles.
        for _ in 0..=self.limits.skills {
            let page: ListResult = self.request(wire::LIST, ListParams { cursor }).await?;
            for entry in page.skills {
                match serde_json::from_value(entry) {
                    Ok(entry) => skills.push(entry),
                    Err(error) => tracing::warn!(%error, "a skill of the server is malformed"),
                }
            }
            if skills.len() > self.limits.skills {
                break;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(skills);
            }
        }
        Err(SkillError::TooLarge {
            reason: format!("the server lists more than {} skills", self.limits.skills),
        })
    }

    /// Gets the entry of one skill, by the URI of its `SKILL.md`. It may be one that is not listed.
    ///
    /// # Errors
    ///
    /// The request fails, or the entry is another one's.
    pub async fn get(&self, uri: &str) -> Result<SkillEntry, SkillError> {
        let params = UriParams { uri: uri.to_owned(), cursor: None };
        let GetResult { skill } = self.request(wire::GET, params).await?;
        match skill.uri == uri {
            true => Ok(skill),
            false => Err(SkillError::unverified(uri, format!("the entry of `{}` was returned", skill.uri))),
        }
    }

    /// Reads the `SKILL.md` of a skill, and verifies it: its size, its digest, and that its front matter is the one that was listed.
    ///
    /// # Errors
    ///
    /// The request fails, or the file is not what was listed.
    pub async fn load(&self, entry: &SkillEntry) -> Result<Skill, SkillError> {
        let text = self.read_text(entry, &entry.uri).await?;
        let front = FrontMatter::parse(&text).map_err(|reason| SkillError::unverified(&entry.uri, reason))?;
        let different = differences(&entry.frontmatter, &front.members);
        if !different.is_empty() {
            let reason = format!("its front matter differs in `{}`", different.join("`, `"));
            return Err(SkillError::unverified(&entry.uri, reason));
        }
        let body_at = text.len() - front.body.len();
        Ok(Skill { entry: entry.clone(), text, body_at })
    }

    /// Reads a file of a skill, and verifies its size and its digest. A file that the entry does not list is not requested.
    ///
    /// # Errors
    ///
    /// The request fails, or the file is not what was listed.
    pub async fn read(&self, entry: &SkillEntry, uri: &str) -> Result<Vec<u8>, SkillError> {
        self.check(entry)?;
        let listed = entry.file(uri);
        if listed.is_none() && entry.resources != SkillFiles::Dynamic {
            return Err(SkillError::unverified(uri, "the skill does not list this file"));
        }
        if !is_below(uri, entry) {
            return Err(SkillError::unverified(uri, "it is not in the directory of the skill"));
        }
        let read = self.connection.read_resource(uri).await?;
        let mut contents = read.contents.into_iter().filter(|contents| contents.uri == uri);
        let (Some(contents), None) = (contents.next(), contents.next()) else {
            return Err(SkillError::unverified(uri, "the server returned another file, or several"));
        };
        let bytes = match contents.body {
            ResourceBody::Text(text) => text.into_bytes(),
            ResourceBody::Blob(blob) => {
                STANDARD.decode(blob).map_err(|error| SkillError::unverified(uri, error.to_string()))?
            }
        };
        if bytes.len() as u64 > self.limits.bytes {
            return Err(SkillError::TooLarge { reason: format!("`{uri}` has {} bytes", bytes.len()) });
        }
        match listed.and_then(|listed| listed.difference(&bytes)) {
            Some(reason) => Err(SkillError::unverified(uri, reason)),
            None => Ok(bytes),
        }
    }

    /// Reads a text file of a skill as [`read`](Self::read) does.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), or the file is not UTF-8.
    pub async fn read_text(&self, entry: &SkillEntry, uri: &str) -> Result<String, SkillError> {
        let bytes = self.read(entry, uri).await?;
        String::from_utf8(bytes).map_err(|_| SkillError::unverified(uri, "it is not text"))
    }

    /// Lists the direct children of a directory of a skill. What it lists and the entry does not, cannot be read.
    ///
    /// # Errors
    ///
    /// The server does not offer this, a request fails, or the directory has more files than the limit.
    pub async fn directory(&self, uri: &str) -> Result<Vec<Resource>, SkillError> {
        if !self.reads_directories {
            return Err(SkillError::Unsupported { what: "lists of directories" });
        }
        let (mut children, mut cursor) = (Vec::new(), None);
        for _ in 0..=self.limits.files {
            let params = UriParams { uri: uri.to_owned(), cursor };
            let page: DirectoryResult = self.request(wire::READ_DIRECTORY, params).await?;
            children.extend(page.resources);
            if children.len() > self.limits.files {
                break;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(children);
            }
        }
        Err(SkillError::TooLarge { reason: format!("`{uri}` has more than {} entries", self.limits.files) })
    }

    /// Checks that an entry can be trusted to say what the skill is made of.
    fn check(&self, entry: &SkillEntry) -> Result<(), SkillError> {
        let unverified = |reason: &str| Err(SkillError::unverified(&entry.uri, reason));
        if !entry.uri.ends_with(&format!("/{SKILL_FILE}")) {
            return unverified("its URI does not end with `/SKILL.md`");
        }
        if entry.directory().rsplit('/').next() != Some(entry.name()) {
            return unverified("its name is not that of its directory");
        }
        let files = match &entry.resources {
            SkillFiles::Listed(files) => files,
            SkillFiles::Dynamic if self.allows_dynamic => return Ok(()),
            SkillFiles::Dynamic => return Err(SkillError::Dynamic { uri: entry.uri.clone() }),
            SkillFiles::Invalid => {
                return unverified("its `resources` are neither a list of files nor `dynamic`");
            }
        };
        if files.len() > self.limits.files {
            return Err(SkillError::TooLarge {
                reason: format!("`{}` has {} files", entry.uri, files.len()),
            });
        }
        let bytes = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
        if bytes > self.limits.bytes {
            return Err(SkillError::TooLarge { reason: format!("`{}` has {bytes} bytes", entry.uri) });
        }
        if entry.file(&entry.uri).is_none() {
            return unverified("it does not list its own `SKILL.md`");
        }
        let mut uris: Vec<_> = files.iter().map(|file| &file.uri).collect();
        uris.sort_unstable();
        if uris.windows(2).any(|pair| pair[0] == pair[1]) {
            return unverified("it lists a file twice");
        }
        Ok(())
    }
}

/// Returns whether a file is in the directory of a skill.
fn is_below(uri: &str, entry: &SkillEntry) -> bool {
    let rest = uri.strip_prefix(entry.directory()).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| rest.split('/').all(|name| !matches!(name, "" | "." | "..")))
}
