//! A confined directory as resources.
//!
//! A [`Directory`] lists the files below one directory and reads them by their URIs, and nothing else whatever the URI
//! says. Its calls block: in `async` code, call them with `spawn_blocking`.

mod entry;
mod error;
mod mime;
#[cfg(any(not(unix), test))]
mod portable;
mod timestamp;
#[cfg(unix)]
mod unix;

use std::{
    ffi::OsString,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_types::schema::{Annotations, Resource, ResourceContents};
use pintle_uri::{decode_bytes, encode_segment, normalise, uri_from_path};

use entry::{Confined, Entry, Rules};
pub use error::ReadError;
#[cfg(not(unix))]
use portable::Root;
#[cfg(unix)]
use unix::Root;

/// The longest URI that is looked at, in bytes.
const MAX_URI: usize = 8 * 1024;

/// A directory whose files are resources.
///
/// ```
/// use pintle::directory::Directory;
///
/// # let path = std::env::temp_dir().join(format!("pintle-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&path)?;
/// std::fs::write(path.join("to do.md"), "milk")?;
///
/// let notes = Directory::new(&path)?.prefix("note://")?;
/// assert_eq!(notes.resources()?[0].uri, "note://to%20do.md");
/// let page = notes.read("note://to%20do.md")?;
/// assert_eq!(page.mime_type.as_deref(), Some("text/markdown"));
/// assert!(notes.read("note://../secrets").is_err());
/// # std::fs::remove_dir_all(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What is served
///
/// Regular files, in subdirectories too, but not what is hidden (a name that starts with a dot), and nothing through a
/// symbolic link, unless [asked for](Self::follow_links). Devices, pipes and sockets are never opened. A hard link
/// cannot be told from the file itself.
///
/// # How it is confined
///
/// On Unix every part of a path is opened on its own, from the directory before it, without following links; whoever
/// renames or links things meanwhile leads nowhere. The directory itself is held open: renamed, it is still the one
/// served. Elsewhere the path is resolved and has to lie below the directory; somebody who can create links *in* the
/// directory could win a race between that and the opening of the file.
#[derive(Clone, Debug)]
pub struct Directory {
    root: Arc<Root>,
    prefix: String,
    rules: Rules,
    max_file_size: u64,
}

impl Directory {
    /// The directory at `path`, which has to exist.
    ///
    /// URIs are those of the files, `file:///…`, unless a [`prefix`](Self::prefix) is set. Files of more than 8 MiB are
    /// not read, and at most 10,000 are listed.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().canonicalize()?;
        let root = Arc::new(Root::open(&path)?);
        let prefix = uri_from_path(&path).map_err(io::Error::other)?;
        let rules = Rules { recursive: true, hidden: false, links: false, max_files: 10_000 };
        Self { root, prefix: String::new(), rules, max_file_size: 8 * 1024 * 1024 }.prefix(&prefix)
    }

    /// What URIs start with, such as `docs://` or `https://example.com/files`. A slash is added where one is missing.
    pub fn prefix(mut self, prefix: &str) -> io::Result<Self> {
        let bad = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{prefix}` is no start of a uri; use `docs://`"),
            )
        };
        let mut canonical = canonical(prefix).ok_or_else(bad)?;
        if canonical.contains(['?', '#']) {
            return Err(bad());
        }
        if !canonical.ends_with(['/', ':']) {
            canonical.push('/');
        }
        self.prefix = canonical;
        Ok(self)
    }

    /// Leaves subdirectories out.
    #[must_use]
    pub fn flat(mut self) -> Self {
        self.rules.recursive = false;
        self
    }

    /// Serves files and directories whose names start with a dot too.
    #[must_use]
    pub fn with_hidden(mut self) -> Self {
        self.rules.hidden = true;
        self
    }

    /// Follows symbolic links that stay in the directory. One that leaves it, or that is absolute, is never followed.
    #[must_use]
    pub fn follow_links(mut self) -> Self {
        self.rules.links = true;
        self
    }

    /// How many bytes a file may have to be read.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// How many files are listed. The others can be read all the same.
    #[must_use]
    pub fn max_files(mut self, files: usize) -> Self {
        self.rules.max_files = files;
        self
    }

    /// A template of all URIs.
    pub fn uri_template(&self) -> String {
        format!("{}{{+path}}", self.prefix)
    }

    /// Whether a URI is one of this directory, whether or not there is such a file.
    pub fn covers(&self, uri: &str) -> bool {
        self.below(uri).is_some()
    }

    /// The files, always in the same order: by name, each directory where its own name is.
    ///
    /// What cannot be looked at is left out.
    pub fn resources(&self) -> io::Result<Vec<Resource>> {
        let (entries, more) = self.root.list(&self.rules)?;
        if more {
            tracing::warn!(prefix = %self.prefix, listed = entries.len(), "directory has more files than are listed");
        }
        Ok(entries.iter().filter_map(|entry| self.resource(entry)).collect())
    }

    /// What is in a file: text if it is UTF-8, else base64.
    pub fn read(&self, uri: &str) -> Result<ResourceContents, ReadError> {
        let not_found = || ReadError::NotFound { uri: uri.to_owned() };
        let io = |source| ReadError::Io { uri: uri.to_owned(), source };
        let names = self.below(uri).and_then(|path| self.names(&path)).ok_or_else(not_found)?;
        let (file, size) = match self.root.file(&names, &self.rules) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found()),
            Err(error) => return Err(io(error)),
        };
        let too_large = |size| ReadError::TooLarge { uri: uri.to_owned(), size, limit: self.max_file_size };
        if size > self.max_file_size {
            return Err(too_large(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // It may have grown since.
        file.take(self.max_file_size.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > self.max_file_size {
            return Err(too_large(bytes.len() as u64));
        }

        let known = names.last().and_then(|name| mime::from_name(&name.to_string_lossy()));
        let text = match known {
            Some(mime::Type { text: false, .. }) => Err(bytes),
            _ if bytes.contains(&0) => Err(bytes),
            _ => String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes),
        };
        let (mut contents, otherwise) = match text {
            Ok(text) => (ResourceContents::text(uri, text), "text/plain"),
            Err(bytes) => (ResourceContents::blob(uri, STANDARD.encode(bytes)), "application/octet-stream"),
        };
        contents.mime_type = Some(known.map_or(otherwise, |known| known.name).to_owned());
        Ok(contents)
    }

    /// What a URI means, without looking whether there is such a file. However it is spelled, it comes back as
    /// [`resources`](Self::resources) has it.
    pub(crate) fn described(&self, uri: &str) -> Option<Resource> {
        let names = self.below(uri).and_then(|path| self.names(&path))?;
        let mut resource = self.resource(&Entry { names, size: 0, modified: None })?;
        resource.size = None;
        Some(resource)
    }

    fn resource(&self, entry: &Entry) -> Option<Resource> {
        let encoded: Option<Vec<_>> =
            entry.names.iter().map(|name| Some(encode_segment(&bytes_of(name)?))).collect();
        let names: Vec<_> = entry.names.iter().map(|name| name.to_string_lossy()).collect();
        let mut resource = Resource::new(format!("{}{}", self.prefix, encoded?.join("/")), names.join("/"));
        resource.mime_type =
            names.last().and_then(|name| mime::from_name(name)).map(|known| known.name.to_owned());
        resource.size = i64::try_from(entry.size).ok();
        if let Some(modified) = entry.modified.and_then(timestamp::iso8601) {
            let mut annotations = Annotations::new();
            annotations.last_modified = Some(modified);
            resource.annotations = Some(annotations);
        }
        Some(resource)
    }

    /// The part of a URI after the prefix.
    fn below(&self, uri: &str) -> Option<String> {
        let uri = canonical(uri)?;
        uri.strip_prefix(&self.prefix).filter(|path| !path.is_empty()).map(str::to_owned)
    }

    /// The names on the way to a file; `None` if a rule forbids one.
    fn names(&self, path: &str) -> Option<Vec<OsString>> {
        if path.contains(['?', '#']) {
            return None;
        }
        let names: Vec<_> =
            path.split('/').map(|name| name_of(&decode_bytes(name))).collect::<Option<_>>()?;
        let allowed = names.iter().all(|name| self.rules.hidden || !entry::is_hidden(name));
        (allowed && (self.rules.recursive || names.len() == 1)).then_some(names)
    }
}

/// A URI written in the one way that is compared, if it is one.
fn canonical(uri: &str) -> Option<String> {
    if uri.len() > MAX_URI {
        return None;
    }
    let uri = normalise(uri)?;
    let (scheme, rest) = uri.split_once(':')?;
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    Some(match rest.strip_prefix("//localhost/") {
        Some(path) if scheme == "file" => format!("file:///{path}"),
        _ => format!("{scheme}:{rest}"),
    })
}

/// A name that stays where it is.
fn name_of(bytes: &[u8]) -> Option<OsString> {
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') || bytes.contains(&0) {
        return None;
    }
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStringExt::from_vec(bytes.to_owned()));
    #[cfg(not(unix))]
    return str::from_utf8(bytes).ok().filter(|name| portable::is_plain(name)).map(OsString::from);
}

/// The bytes that stand for a name in a URI. Elsewhere than on Unix, a name may have none.
fn bytes_of(name: &std::ffi::OsStr) -> Option<Vec<u8>> {
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStrExt::as_bytes(name).to_owned());
    #[cfg(not(unix))]
    return name.to_str().map(|name| name.as_bytes().to_owned());
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
