use std::{
    fmt::Write as _,
    path::{Component, Path, PathBuf, Prefix},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pintle_types::schema::Root;

use super::shared::Shared;

/// The places that servers may work in. They may change while connections are open; servers are told.
///
/// A clone is another handle to the same roots.
///
/// ```
/// use pintle::client::{Client, Roots};
///
/// let roots = Roots::new(["file:///srv/data"]);
/// let client = Client::new("demo", "1.0.0").roots(&roots);
/// roots.add("file:///srv/more");
/// roots.remove("file:///srv/data");
/// assert_eq!(roots.list()[0].uri, "file:///srv/more");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
struct Inside {
    roots: Vec<Root>,
    connections: Vec<Weak<Shared>>,
}

impl Roots {
    /// These roots: URIs, or paths of this machine.
    pub fn new<R: IntoRoot>(roots: impl IntoIterator<Item = R>) -> Self {
        let new = Self::default();
        new.lock().roots = roots.into_iter().map(IntoRoot::into_root).collect();
        new
    }

    /// All of them, as they are now.
    pub fn list(&self) -> Vec<Root> {
        self.lock().roots.clone()
    }

    /// Adds one, or replaces the one with the same URI.
    pub fn add(&self, root: impl IntoRoot) {
        let root = root.into_root();
        self.change(|roots| match roots.iter_mut().find(|known| known.uri == root.uri) {
            Some(known) if *known == root => false,
            Some(known) => {
                *known = root;
                true
            }
            None => {
                roots.push(root);
                true
            }
        });
    }

    /// Removes one. It is no mistake if it is not there.
    pub fn remove(&self, root: impl IntoRoot) {
        let uri = root.into_root().uri;
        self.change(|roots| {
            let before = roots.len();
            roots.retain(|root| root.uri != uri);
            roots.len() != before
        });
    }

    /// Replaces all of them.
    pub fn set<R: IntoRoot>(&self, roots: impl IntoIterator<Item = R>) {
        let new: Vec<Root> = roots.into_iter().map(IntoRoot::into_root).collect();
        self.change(|roots| {
            let differs = *roots != new;
            *roots = new;
            differs
        });
    }

    /// From now on this connection is told of changes.
    pub(super) fn register(&self, connection: &Arc<Shared>) {
        let mut inside = self.lock();
        inside.connections.retain(|connection| connection.strong_count() > 0);
        inside.connections.push(Arc::downgrade(connection));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Root>) -> bool) {
        let mut inside = self.lock();
        if change(&mut inside.roots) {
            for connection in inside.connections.iter().filter_map(Weak::upgrade) {
                connection.signals.roots_changed();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&Self> for Roots {
    fn from(roots: &Self) -> Self {
        roots.clone()
    }
}

impl<R: IntoRoot, const N: usize> From<[R; N]> for Roots {
    fn from(roots: [R; N]) -> Self {
        Self::new(roots)
    }
}

impl<R: IntoRoot> From<Vec<R>> for Roots {
    fn from(roots: Vec<R>) -> Self {
        Self::new(roots)
    }
}

/// What can be a root: a [`Root`], a URI, or a path of this machine.
pub trait IntoRoot {
    /// The root.
    fn into_root(self) -> Root;
}

impl IntoRoot for Root {
    fn into_root(self) -> Root {
        self
    }
}

/// Text with a scheme is a URI; anything else is a path.
impl IntoRoot for &str {
    fn into_root(self) -> Root {
        if has_scheme(self) { Root::new(self) } else { Path::new(self).into_root() }
    }
}

impl IntoRoot for String {
    fn into_root(self) -> Root {
        self.as_str().into_root()
    }
}

impl IntoRoot for PathBuf {
    fn into_root(self) -> Root {
        self.as_path().into_root()
    }
}

/// A path that is not absolute is one from the current directory.
impl IntoRoot for &Path {
    fn into_root(self) -> Root {
        Root::new(file_uri(self))
    }
}

fn has_scheme(text: &str) -> bool {
    // One letter and a colon is a drive.
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn file_uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut uri = String::from("file://");
    for component in path.components() {
        match component {
            Component::Prefix(prefix) => match prefix.kind() {
                Prefix::Disk(drive) | Prefix::VerbatimDisk(drive) => {
                    uri.extend(['/', char::from(drive), ':']);
                }
                Prefix::UNC(host, share) | Prefix::VerbatimUNC(host, share) => {
                    push_encoded(&mut uri, host.as_encoded_bytes());
                    uri.push('/');
                    push_encoded(&mut uri, share.as_encoded_bytes());
                }
                _ => {}
            },
            Component::Normal(part) => {
                uri.push('/');
                push_encoded(&mut uri, part.as_encoded_bytes());
            }
            Component::RootDir | Component::CurDir | Component::ParentDir => {}
        }
    }
    if uri == "file://" {
        uri.push('/');
    }
    uri
}

fn push_encoded(uri: &mut String, part: &[u8]) {
    for byte in part {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_scheme_is_a_path() {
        assert_eq!("file:///a".into_root().uri, "file:///a");
        #[cfg(unix)]
        {
            assert_eq!("/a b/ü?".into_root().uri, "file:///a%20b/%C3%BC%3F");
            assert_eq!("/".into_root().uri, "file:///");
            assert!("here".into_root().uri.ends_with("/here"));
        }
    }
}
