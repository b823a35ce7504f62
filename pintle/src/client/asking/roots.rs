use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pintle_types::schema::Root;

use crate::{Error, Result, client::sealed::Sealed, uri::root_from_path};

/// The roots that servers may work in. They can change while connections are open; servers are notified.
///
/// Clones share the same roots.
///
/// ```
/// use pintle::client::{Client, Roots};
///
/// let roots = Roots::new(["file:///srv/data"])?;
/// let client = Client::new("demo", "1.0.0").roots(&roots);
/// roots.add("file:///srv/more")?;
/// roots.remove("file:///srv/data")?;
/// assert_eq!(roots.list()[0].uri, "file:///srv/more");
/// # Ok::<(), pintle::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    roots: Vec<Root>,
    observers: Vec<Weak<dyn RootsObserver>>,
}

/// A connection whose server is notified when the roots change.
pub(in crate::client) trait RootsObserver: fmt::Debug + Send + Sync {
    fn roots_changed(&self);
}

impl Roots {
    /// Creates roots from URIs or local paths.
    ///
    /// # Errors
    ///
    /// A path cannot be made absolute, such as one with a `..` in it that does not exist.
    pub fn new<R: IntoRoot>(roots: impl IntoIterator<Item = R>) -> Result<Self> {
        let new = Self::default();
        new.set(roots)?;
        Ok(new)
    }

    /// Returns the current roots.
    pub fn list(&self) -> Vec<Root> {
        self.lock().roots.clone()
    }

    /// Adds a root, or replaces the one with the same URI.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn add(&self, root: impl IntoRoot) -> Result<()> {
        let root = root.into_root()?;
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
        Ok(())
    }

    /// Removes a root, if it exists.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn remove(&self, root: impl IntoRoot) -> Result<()> {
        let uri = root.into_root()?.uri;
        self.change(|roots| {
            let before = roots.len();
            roots.retain(|root| root.uri != uri);
            roots.len() != before
        });
        Ok(())
    }

    /// Replaces all roots.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); then nothing is replaced.
    pub fn set<R: IntoRoot>(&self, roots: impl IntoIterator<Item = R>) -> Result<()> {
        let new: Vec<Root> = roots.into_iter().map(IntoRoot::into_root).collect::<Result<_>>()?;
        self.change(|roots| {
            let differs = *roots != new;
            *roots = new;
            differs
        });
        Ok(())
    }

    /// Registers a connection for changes.
    pub(in crate::client) fn register(&self, observer: Weak<dyn RootsObserver>) {
        let mut inner = self.lock();
        inner.observers.retain(|observer| observer.strong_count() > 0);
        inner.observers.push(observer);
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Root>) -> bool) {
        let mut inner = self.lock();
        if change(&mut inner.roots) {
            for observer in inner.observers.iter().filter_map(Weak::upgrade) {
                observer.roots_changed();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Types that can be a client's roots: a [`Roots`] handle, or a list of [roots](IntoRoot). Sealed.
pub trait IntoRoots: Sealed {
    /// The roots.
    ///
    /// # Errors
    ///
    /// As [`Roots::new`].
    fn into_roots(self) -> Result<Roots>;
}

impl IntoRoots for Roots {
    fn into_roots(self) -> Result<Roots> {
        Ok(self)
    }
}

impl IntoRoots for &Roots {
    fn into_roots(self) -> Result<Roots> {
        Ok(self.clone())
    }
}

impl<R: IntoRoot, const N: usize> IntoRoots for [R; N] {
    fn into_roots(self) -> Result<Roots> {
        Roots::new(self)
    }
}

impl<R: IntoRoot> IntoRoots for Vec<R> {
    fn into_roots(self) -> Result<Roots> {
        Roots::new(self)
    }
}

/// Types that can be a root: a [`Root`], a URI, or a local path. Sealed.
pub trait IntoRoot: Sealed {
    /// The root.
    ///
    /// # Errors
    ///
    /// It is a path that cannot be made absolute.
    fn into_root(self) -> Result<Root>;
}

impl IntoRoot for Root {
    fn into_root(self) -> Result<Root> {
        Ok(self)
    }
}

/// Text with a scheme is a URI; anything else is a path.
impl IntoRoot for &str {
    fn into_root(self) -> Result<Root> {
        if has_scheme(self) { Ok(Root::new(self)) } else { Path::new(self).into_root() }
    }
}

impl IntoRoot for String {
    fn into_root(self) -> Result<Root> {
        self.as_str().into_root()
    }
}

impl IntoRoot for PathBuf {
    fn into_root(self) -> Result<Root> {
        self.as_path().into_root()
    }
}

/// A path that is not absolute is one from the current directory.
impl IntoRoot for &Path {
    fn into_root(self) -> Result<Root> {
        root_from_path(self).map_err(|error| Error::Misuse(error.to_string()))
    }
}

impl Sealed for Roots {}
impl Sealed for &Roots {}
impl<R: IntoRoot, const N: usize> Sealed for [R; N] {}
impl<R: IntoRoot> Sealed for Vec<R> {}
impl Sealed for Root {}
impl Sealed for &str {}
impl Sealed for String {}
impl Sealed for PathBuf {}
impl Sealed for &Path {}

fn has_scheme(text: &str) -> bool {
    // One letter and a colon is a drive.
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_scheme_is_a_path() {
        let uri = |text: &str| text.into_root().map(|root| root.uri).map_err(|error| error.to_string());
        assert_eq!(uri("file:///a").unwrap(), "file:///a");
        #[cfg(unix)]
        {
            assert_eq!(uri("/a b/c").unwrap(), "file:///a%20b/c");
            assert_eq!(uri("/a:b").unwrap(), "file:///a:b");
            assert!(uri("here").unwrap().ends_with("/here"));
            assert!(uri("/nowhere/at/all/../x").unwrap_err().contains("cannot be converted to a file uri"));
        }
    }
}
