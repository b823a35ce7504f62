//! URI templates and `file:` URIs.
//!
//! A [`Template`] is an RFC 6570 template that a server can match a URI against. A match returns [`Vars`], which
//! deserialize into your own type. [`expand`] builds a URI from any template that a server offers. [`root_from_path`] and
//! [`path_from_uri`] convert between paths and `file:` URIs.
//!
//! Everything but [`root_from_path`] comes from the crate `pintle-uri`, which does not depend on the protocol.

use std::path::Path;

pub use pintle_uri::{
    DecodeError, FileUriError, Template, TemplateError, TemplateIndex, TemplateMatch, TemplateRank, Uri,
    UriFault, UriLimits, UriPattern, UriTooLong, Value, Values, Vars, expand, path_from_uri, uri_from_path,
};

use crate::types::schema::Root;

/// Returns a directory or file as a root that a client offers: its `file:` URI, named after its last component.
///
/// ```
/// # if cfg!(unix) {
/// let root = pintle::uri::root_from_path("/srv/bob/my project")?;
/// assert_eq!(root.uri, "file:///srv/bob/my%20project");
/// assert_eq!(root.name.as_deref(), Some("my project"));
/// # }
/// # Ok::<(), pintle::uri::FileUriError>(())
/// ```
///
/// # Errors
///
/// Fails if the path cannot be made absolute, as [`uri_from_path`] does.
pub fn root_from_path(path: impl AsRef<Path>) -> Result<Root, FileUriError> {
    let mut root = Root::new(uri_from_path(path)?);
    let absolute = path_from_uri(&root.uri).ok();
    root.name = absolute.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    Ok(root)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_root_from_any_path() {
        let here = std::env::current_dir().unwrap();
        let root = root_from_path(".").unwrap();
        assert_eq!(path_from_uri(&root.uri).unwrap(), here);
        assert_eq!(root.name.as_deref(), here.file_name().and_then(|name| name.to_str()));
        let parent = root_from_path("src/..").unwrap();
        assert_eq!(path_from_uri(&parent.uri).unwrap(), here.canonicalize().unwrap());
        assert_eq!(
            root_from_path("no/such/..").unwrap_err().to_string(),
            "path `no/such/..` cannot be converted to a file uri: No such file or directory (os error 2)"
        );
        assert_eq!(root_from_path("/").unwrap(), Root::new("file:///"));
        assert!(root_from_path("").is_err());
    }
}
