//! The skills of a folder, as they are served.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pintle::types::schema::{Resource, ResourceBody, ResourceContents};
use pintle_yaml::FrontMatter;
use serde_json::Value;

use crate::{
    SkillEntry, SkillError, SkillFile,
    entry::SKILL_FILE,
    wire::{DIRECTORY_TYPE, MAX_BYTES, MAX_FILES},
};

/// Skills with the contents of all their files, so that what is read is what was listed.
#[derive(Debug, Default)]
pub(crate) struct SkillFolder {
    /// The skills, by URI.
    pub(crate) skills: BTreeMap<String, SkillEntry>,
    /// The files of skills, by URI.
    pub(crate) files: BTreeMap<String, LoadedFile>,
    /// The direct children of directories, by the URI of the directory.
    pub(crate) directories: BTreeMap<String, BTreeMap<String, Resource>>,
}

/// A file with its contents.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) resource: Resource,
    pub(crate) contents: ResourceContents,
    listed: SkillFile,
}

impl SkillFolder {
    /// Makes a folder of files. Those that belong to no skill are left out. `max_bytes` is the limit of all contents.
    pub(crate) fn new(
        files: impl IntoIterator<Item = Result<ResourceContents, SkillError>>,
        max_bytes: u64,
    ) -> Result<Self, SkillError> {
        let (mut read, mut total) = (BTreeMap::new(), 0);
        for contents in files {
            let contents = contents?;
            let file = loaded(contents)?;
            total += file.listed.size;
            if total > max_bytes {
                return Err(SkillError::TooLarge {
                    reason: format!("the files have more than {max_bytes} bytes"),
                });
            }
            read.insert(file.listed.uri.clone(), file);
        }
        let roots: Vec<String> = read.keys().filter_map(|uri| Some(root_of(uri)?.to_owned())).collect();
        let mut folder = Self::default();
        let is_below =
            |uri: &str, root: &str| uri.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        read.retain(|uri, _| roots.iter().any(|root| is_below(uri, root)));
        let mut folded = BTreeSet::new();
        if let Some(uri) = read.keys().find(|uri| !folded.insert(uri.to_lowercase())) {
            return Err(SkillError::invalid(uri, "the names of two files differ only in case; rename one"));
        }
        for root in &roots {
            let files: Vec<_> = read
                .iter()
                .filter(|(uri, _)| is_below(uri, root))
                .map(|(_, file)| file.listed.clone())
                .collect();
            let uri = format!("{root}/{SKILL_FILE}");
            let Some(file) = read.get_mut(&uri) else { continue };
            let entry = entry(&uri, root, file, files)?;
            file.resource.name = entry.name().to_owned();
            file.resource.description = Some(entry.description().to_owned());
            file.resource.mime_type = Some("text/markdown".to_owned());
            file.contents.mime_type = Some("text/markdown".to_owned());
            folder.skills.insert(uri, entry);
        }
        for (uri, file) in &read {
            folder.add_to_directories(uri, &file.resource, &roots);
        }
        folder.files = read;
        Ok(folder)
    }

    /// Adds a file to its directory, and that to the one above, up to the root of its skill.
    fn add_to_directories(&mut self, uri: &str, resource: &Resource, roots: &[String]) {
        let (mut child, mut uri) = (resource.clone(), uri.to_owned());
        while let Some((directory, name)) = uri.clone().rsplit_once('/') {
            if !roots.iter().any(|root| directory == root || directory.starts_with(&format!("{root}/"))) {
                return;
            }
            self.directories.entry(directory.to_owned()).or_default().insert(name.to_owned(), child);
            let name = directory.rsplit('/').next().unwrap_or(directory);
            child = Resource::new(directory, name);
            child.mime_type = Some(DIRECTORY_TYPE.to_owned());
            uri = directory.to_owned();
        }
    }
}

/// Returns the directory of a skill, if this is the URI of its `SKILL.md`.
fn root_of(uri: &str) -> Option<&str> {
    let root = uri.strip_suffix(SKILL_FILE)?.strip_suffix('/')?;
    (!root.ends_with([':', '/'])).then_some(root)
}

fn loaded(contents: ResourceContents) -> Result<LoadedFile, SkillError> {
    let listed = match &contents.body {
        ResourceBody::Text(text) => SkillFile::of(&contents.uri, text.as_bytes()),
        ResourceBody::Blob(blob) => {
            let bytes = STANDARD
                .decode(blob)
                .map_err(|error| SkillError::invalid(&contents.uri, error.to_string()))?;
            SkillFile::of(&contents.uri, &bytes)
        }
    };
    let name = contents.uri.rsplit('/').next().unwrap_or(&contents.uri);
    let mut resource = Resource::new(contents.uri.clone(), name);
    resource.mime_type.clone_from(&contents.mime_type);
    resource.size = i64::try_from(listed.size).ok();
    Ok(LoadedFile { resource, contents, listed })
}

/// Returns the entry of a skill, if its front matter is valid.
fn entry(uri: &str, root: &str, file: &LoadedFile, files: Vec<SkillFile>) -> Result<SkillEntry, SkillError> {
    let invalid = |reason: String| SkillError::invalid(uri, reason);
    let ResourceBody::Text(text) = &file.contents.body else {
        return Err(invalid("it is not UTF-8; save it as such".to_owned()));
    };
    let front = FrontMatter::parse(text).map_err(invalid)?;
    let text = |name: &str| front.members.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, description) = (text("name"), text("description"));
    if !is_skill_name(name) {
        let rule = "use 1 to 64 lower-case letters, digits and single hyphens";
        return Err(invalid(format!("`name: {name}` is not the name of a skill; {rule}")));
    }
    if root.rsplit('/').next() != Some(name) {
        return Err(invalid(format!(
            "the name is `{name}`, and the directory has another; rename one of them"
        )));
    }
    if !(1..=1024).contains(&description.chars().count()) {
        return Err(invalid(
            "the description is missing or longer than 1024 characters; write a short one".to_owned(),
        ));
    }
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    if files.len() > MAX_FILES || bytes > MAX_BYTES {
        tracing::warn!(
            uri,
            files = files.len(),
            bytes,
            "the skill is larger than {MAX_FILES} files or {MAX_BYTES} bytes: hosts may refuse it"
        );
    }
    Ok(SkillEntry::new(uri.to_owned(), front.members, files))
}

fn is_skill_name(name: &str) -> bool {
    let fits = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= 64 && name.split('-').all(fits)
}
