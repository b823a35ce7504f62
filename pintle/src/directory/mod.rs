//! Files of a directory as resources.
//!
//! A [`Directory`] lists the files of a directory and reads them by URI. No URI leads out of the directory. Its methods
//! block: in `async` code, call them in `spawn_blocking`.

mod entry;
mod error;
mod mime;
#[cfg(any(not(unix), test))]
mod portable;
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
use pintle_uri::{Uri, UriFault, UriLimits, decode_bytes, encode_segment, uri_from_path};

use entry::{Confined, DirectoryRules, FileEntry};
pub use error::ReadError;
#[cfg(not(unix))]
use portable::DirectoryPath as Root;
#[cfg(unix)]
use unix::DirectoryHandle as Root;

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
/// # Served files
///
/// Regular files are served, including those in subdirectories. Hidden files (whose names start with a dot) and symbolic
/// links are not, unless [enabled](Self::follow_links). Devices, pipes and sockets are never opened. Hard links are
/// indistinguishable from regular files.
///
/// # Confinement
///
/// On Unix, each component of a path is opened relative to its parent without following links, so concurrent renames and
/// links cannot lead out of the directory. The directory itself is held open: it is still served after it was renamed. On
/// other systems, the path is resolved and must be below the directory; an attacker who can create links *in* the
/// directory could win a race between this check and opening the file.
#[derive(Clone, Debug)]
pub struct Directory {
    root: Arc<Root>,
    prefix: String,
    rules: DirectoryRules,
    max_file_size: u64,
}

impl Directory {
    /// Opens the directory at `path`, which has to exist.
    ///
    /// URIs are `file:///…` unless a [`prefix`](Self::prefix) is set. By default, files of more than 8 MiB are
    /// not read, and at most 10,000 files are listed.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().canonicalize()?;
        let root = Arc::new(Root::open(&path)?);
        let prefix = uri_from_path(&path).map_err(io::Error::other)?;
        let rules = DirectoryRules { recursive: true, hidden: false, links: false, max_files: 10_000 };
        Self { root, prefix: String::new(), rules, max_file_size: 8 * 1024 * 1024 }.prefix(&prefix)
    }

    /// Sets the prefix of URIs, such as `docs://` or `https://example.com/files`. A missing slash is added.
    pub fn prefix(mut self, prefix: &str) -> io::Result<Self> {
        let bad = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{prefix}` is not a valid URI prefix; use `docs://`"),
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

    /// Excludes subdirectories.
    #[must_use]
    pub fn flat(mut self) -> Self {
        self.rules.recursive = false;
        self
    }

    /// Includes files and directories whose names start with a dot.
    #[must_use]
    pub fn with_hidden(mut self) -> Self {
        self.rules.hidden = true;
        self
    }

    /// Follows symbolic links within the directory. Links that leave it, and absolute links, are never followed.
    #[must_use]
    pub fn follow_links(mut self) -> Self {
        self.rules.links = true;
        self
    }

    /// Sets the maximum size of a file that is read.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// Sets the maximum number of files that are listed. Other files can still be read.
    #[must_use]
    pub fn max_files(mut self, files: usize) -> Self {
        self.rules.max_files = files;
        self
    }

    /// Returns a URI template that covers all files.
    pub fn uri_template(&self) -> String {
        format!("{}{{+path}}", self.prefix)
    }

    /// Returns whether a URI belongs to this directory, whether or not the file exists.
    pub fn covers(&self, uri: &str) -> bool {
        self.below(uri).is_some()
    }

    /// Lists the files, sorted by name; the files of a subdirectory follow at the position of its name.
    ///
    /// Inaccessible files are omitted.
    pub fn resources(&self) -> io::Result<Vec<Resource>> {
        let (entries, more) = self.root.list(&self.rules)?;
        if more {
            tracing::warn!(prefix = %self.prefix, listed = entries.len(), "the directory has more files than the limit; the rest is not listed");
        }
        Ok(entries.iter().filter_map(|entry| self.resource(entry)).collect())
    }

    /// Reads a file: as text if it is UTF-8, otherwise as base64.
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
        // The file may have grown since.
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

    /// Returns the resource for a URI without checking that the file exists. The URI is normalized as in
    /// [`resources`](Self::resources).
    pub(crate) fn described(&self, uri: &str) -> Option<Resource> {
        let names = self.below(uri).and_then(|path| self.names(&path))?;
        let mut resource = self.resource(&FileEntry { names, size: 0, modified: None })?;
        resource.size = None;
        Some(resource)
    }

    fn resource(&self, entry: &FileEntry) -> Option<Resource> {
        let encoded: Option<Vec<_>> =
            entry.names.iter().map(|name| Some(encode_segment(&bytes_of(name)?))).collect();
        let names: Vec<_> = entry.names.iter().map(|name| name.to_string_lossy()).collect();
        let mut resource = Resource::new(format!("{}{}", self.prefix, encoded?.join("/")), names.join("/"));
        resource.mime_type =
            names.last().and_then(|name| mime::from_name(name)).map(|known| known.name.to_owned());
        resource.size = i64::try_from(entry.size).ok();
        if let Some(modified) = entry.modified.and_then(crate::message_log::timestamp::iso8601) {
            let mut annotations = Annotations::new();
            annotations.last_modified = Some(modified);
            resource.annotations = Some(annotations);
        }
        Some(resource)
    }

    /// Returns the part of a URI after the prefix.
    fn below(&self, uri: &str) -> Option<String> {
        let uri = canonical(uri)?;
        uri.strip_prefix(&self.prefix).filter(|path| !path.is_empty()).map(str::to_owned)
    }

    /// Splits a path into names; `None` if a rule forbids one.
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

/// Normalizes a URI for comparison; `None` if it is not a URI.
fn canonical(uri: &str) -> Option<String> {
    let uri = Uri::read(uri, UriLimits::READ).ok().filter(|uri| uri.fault() != Some(UriFault::Percent))?;
    let (scheme, _) = uri.as_str().split_once(':')?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (!scheme.is_empty() && scheme.bytes().all(fits)).then(|| uri.as_str().to_owned())
}

/// Converts a path segment to a file name; `None` if it would lead elsewhere.
fn name_of(bytes: &[u8]) -> Option<OsString> {
    if matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') || bytes.contains(&0) {
        return None;
    }
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStringExt::from_vec(bytes.to_owned()));
    #[cfg(not(unix))]
    return str::from_utf8(bytes).ok().filter(|name| portable::is_plain(name)).map(OsString::from);
}

/// Returns the bytes of a name for use in a URI. On systems other than Unix, a name may have none.
fn bytes_of(name: &std::ffi::OsStr) -> Option<Vec<u8>> {
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStrExt::as_bytes(name).to_owned());
    #[cfg(not(unix))]
    return name.to_str().map(|name| name.as_bytes().to_owned());
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
