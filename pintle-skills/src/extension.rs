use std::{
    collections::BTreeMap,
    ops::Bound,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use pintle::{
    directory::Directory,
    server::{
        CacheHint, Cx, Installation, PageRequest, ProtocolExtension, RequestError, ResourcePage,
        ResourceSource, Target, method,
    },
    types::{
        JsonObject, RpcError,
        schema::{ReadResourceResult, Resource, ResourceContents},
    },
};
use serde_json::{Value, json};

use crate::{
    EXTENSION, SkillError,
    folder::SkillFolder,
    wire::{self, DirectoryResult, ListParams, UriParams},
};

/// The default limit of the contents of all files, in bytes.
const MAX_TOTAL: u64 = 64 << 20;
/// The number of entries of a page.
const PAGE: usize = 100;

/// The skills of a server, for [`Server::with`](pintle::Server::with).
///
/// Each directory with a file `SKILL.md` is a skill, at any depth, and all files below it are its files. All are read when this is
/// created, so that every file is served as it was listed; [`reload`](Self::reload) reads them again. They are also resources, which
/// clients of every revision can read.
///
/// ```
/// use pintle::Server;
/// use pintle_skills::Skills;
///
/// # fn serve() -> Result<Server, Box<dyn std::error::Error>> {
/// // `skills/invoices/SKILL.md` has the URI `skill://invoices/SKILL.md`.
/// let skills = Skills::new("skills")?.list_directories();
/// Ok(Server::new("office", "1.0.0").with(skills))
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Skills {
    folder: Arc<RwLock<Arc<SkillFolder>>>,
    /// Where the files are, unless they are part of the program.
    directory: Option<Directory>,
    lists_directories: bool,
    in_sessions: bool,
    cache: CacheHint,
    max_bytes: u64,
}

impl Skills {
    /// Reads the skills of a folder. Their URIs begin with `skill://`. It blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, or a `SKILL.md` is invalid: its front matter is missing, or its name is not that of its directory.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, SkillError> {
        Self::from_directory(Directory::new(path)?.prefix("skill://")?)
    }

    /// Reads the skills of a directory, with its [prefix](Directory::prefix) and its rules for links, hidden files and sizes. It
    /// blocks.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_directory(directory: Directory) -> Result<Self, SkillError> {
        let folder = read(&directory, MAX_TOTAL)?;
        Ok(Self::of(folder, Some(directory)))
    }

    /// Makes skills of files that are part of the program: paths below `prefix`, and texts, for example of `include_str!`.
    ///
    /// # Errors
    ///
    /// A `SKILL.md` is invalid.
    pub fn from_files<'a>(
        prefix: &str,
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SkillError> {
        let files = files.into_iter().map(|(path, text)| {
            if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
                return Err(SkillError::invalid(
                    path,
                    "it is not a path below the prefix; write `greet/SKILL.md`",
                ));
            }
            let separator = if prefix.ends_with('/') { "" } else { "/" };
            let mut contents = ResourceContents::text(format!("{prefix}{separator}{path}"), text);
            contents.mime_type = path.ends_with(".md").then(|| "text/markdown".to_owned());
            Ok(contents)
        });
        Ok(Self::of(SkillFolder::new(files, MAX_TOTAL)?, None))
    }

    fn of(folder: SkillFolder, directory: Option<Directory>) -> Self {
        Self {
            folder: Arc::new(RwLock::new(Arc::new(folder))),
            directory,
            lists_directories: false,
            in_sessions: false,
            cache: CacheHint::default(),
            max_bytes: MAX_TOTAL,
        }
    }

    /// Lets clients list the directories of skills.
    #[must_use]
    pub fn list_directories(mut self) -> Self {
        self.lists_directories = true;
        self
    }

    /// Offers the methods to clients with a session too. The specification of skills is for clients without one; to others the files
    /// are resources.
    #[must_use]
    pub fn in_sessions(mut self) -> Self {
        self.in_sessions = true;
        self
    }

    /// Sets how long clients may keep lists of skills. By default they may not.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }

    /// Sets the limit of the contents of all files for the next [`reload`](Self::reload). 64 MiB by default.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Reads the folder again. Clones have the same skills. It blocks. Call
    /// [`Server::resources_changed`](pintle::Server::resources_changed) afterwards.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new). The skills stay as they were.
    pub fn reload(&self) -> Result<(), SkillError> {
        if let Some(directory) = &self.directory {
            let folder = Arc::new(read(directory, self.max_bytes)?);
            *self.folder.write().unwrap_or_else(PoisonError::into_inner) = folder;
        }
        Ok(())
    }

    fn folder(&self) -> Arc<SkillFolder> {
        self.folder.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the cache hints of a result, for revisions that have them.
    fn hint(&self, cx: &Cx) -> Option<&CacheHint> {
        cx.facts().cache_hints.then_some(&self.cache)
    }

    fn list(&self, cx: &Cx, params: ListParams) -> Result<Value, RpcError> {
        let folder = self.folder();
        let (page, next) = page(cx, &folder.skills, params.cursor, |skill| folder.is_shown(cx, &skill.uri))?;
        let mut result = json!({ "skills": page });
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        Ok(wire::cached(result, self.hint(cx)))
    }

    fn get(&self, cx: &Cx, uri: &str) -> Result<Value, RpcError> {
        let folder = self.folder();
        let skill = folder.skills.get(uri).filter(|_| folder.is_shown(cx, uri));
        let skill = skill.ok_or_else(|| unknown("skill", uri))?;
        Ok(wire::cached(json!({ "skill": skill }), self.hint(cx)))
    }

    fn read_directory(&self, cx: &Cx, params: UriParams) -> Result<DirectoryResult, RpcError> {
        let folder = self.folder();
        let children = folder.directories.get(&params.uri).filter(|_| folder.is_shown(cx, &params.uri));
        let children = children.ok_or_else(|| unknown("directory", &params.uri))?;
        let (page, next_cursor) = page(cx, children, params.cursor, |child| folder.is_shown(cx, &child.uri))?;
        Ok(DirectoryResult { resources: page.into_iter().cloned().collect(), next_cursor })
    }
}

fn unknown(what: &str, uri: &str) -> RpcError {
    let shown: String = uri.chars().take(256).collect();
    RpcError::invalid_params(format!("no such {what}: `{shown}`; list them first"))
}

impl SkillFolder {
    /// Returns whether the caller sees a file, or a file in a directory.
    fn is_shown(&self, cx: &Cx, uri: &str) -> bool {
        let shows = |uri: &str| cx.shows(&Target::Resource(uri.into()));
        if self.files.contains_key(uri) {
            return shows(uri);
        }
        let below = format!("{uri}/");
        let files = self.files.range(below.clone()..).map(|(uri, _)| uri);
        files.take_while(|uri| uri.starts_with(&below)).any(|uri| shows(uri))
    }
}

/// Reads all files of a directory.
fn read(directory: &Directory, max_bytes: u64) -> Result<SkillFolder, SkillError> {
    let files = directory.resources()?;
    let files = files.iter().map(|file| {
        directory.read(&file.uri).map_err(|error| SkillError::invalid(&file.uri, error.to_string()))
    });
    SkillFolder::new(files, max_bytes)
}

/// Returns a page of those entries of a map that are shown, and the cursor of the next one: the key that it ends with.
fn page<'a, T>(
    cx: &Cx,
    entries: &'a BTreeMap<String, T>,
    cursor: Option<String>,
    is_shown: impl Fn(&T) -> bool,
) -> Result<(Vec<&'a T>, Option<String>), RpcError> {
    let after = match cursor {
        None => None,
        Some(cursor) => {
            let key = cx.open_cursor(&cursor).and_then(|key| String::from_utf8(key).ok());
            Some(key.ok_or_else(|| {
                RpcError::invalid_params("the cursor is not one of this list; begin without one")
            })?)
        }
    };
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = entries.range((after, Bound::Unbounded)).filter(|(_, entry)| is_shown(entry));
    let page: Vec<_> = rest.by_ref().take(PAGE).collect();
    let last = page.last().filter(|_| rest.next().is_some());
    let last = last.map(|(key, _)| cx.seal_cursor(key.as_bytes()));
    Ok((page.into_iter().map(|(_, entry)| entry).collect(), last))
}

impl ProtocolExtension for Skills {
    fn name(&self) -> &str {
        EXTENSION
    }

    fn settings(&self) -> JsonObject {
        let read = self.lists_directories.then(|| (wire::DIRECTORY_READ.to_owned(), true.into()));
        read.into_iter().collect()
    }

    fn install(self, skills: Installation) -> Installation {
        let (list, get, read) = (self.clone(), self.clone(), self.clone());
        let mut skills = skills
            .for_all_clients()
            .needs("resources")
            .source(SkillSource(self.clone()))
            .method(method(wire::LIST, move |cx: Cx, params: ListParams| {
                let listed = list.list(&cx, params);
                async move { listed }
            }))
            .method(method(wire::GET, move |cx: Cx, params: UriParams| {
                let found = get.get(&cx, &params.uri);
                async move { found }
            }));
        if self.lists_directories {
            skills = skills.method(method(wire::READ_DIRECTORY, move |cx: Cx, params: UriParams| {
                let children = read.read_directory(&cx, params);
                async move { children }
            }));
        }
        if self.in_sessions { skills } else { skills.stateless_only() }
    }
}

/// The files of skills, as resources.
struct SkillSource(Skills);

impl ResourceSource for SkillSource {
    async fn list(&self, _: Cx, _: PageRequest) -> Result<ResourcePage, RequestError> {
        Ok(self.0.folder().files.values().map(|file| file.resource.clone()).collect())
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        self.0.folder().files.get(uri).map(|file| file.resource.clone())
    }

    async fn read(&self, _: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
        let folder = self.0.folder();
        let file = folder.files.get(&uri).ok_or_else(RequestError::not_found)?;
        Ok(ReadResourceResult::new(vec![file.contents.clone()]))
    }
}
