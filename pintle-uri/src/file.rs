use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use super::percent::{Set, decode_bytes, encode_bytes, normalise, triplet};

/// Returns the `file:` URI of a path.
///
/// A relative path is resolved against the current directory. It need not exist, unless it contains `..`, which only the
/// file system can resolve. On Windows, `C:\a` is `file:///C:/a` and `\\server\share` is `file://server/share`.
pub fn uri_from_path(path: impl AsRef<Path>) -> Result<String, FileUriError> {
    from_absolute(&absolute(path.as_ref())?)
}

/// Returns the path of a `file:` URI. It is always absolute and without `.` or `..`.
///
/// ```
/// # if cfg!(unix) {
/// let path = pintle_uri::path_from_uri("file:///srv/bob/my%20project")?;
/// assert_eq!(path, std::path::Path::new("/srv/bob/my project"));
/// # }
/// # Ok::<(), pintle_uri::FileUriError>(())
/// ```
pub fn path_from_uri(uri: &str) -> Result<PathBuf, FileUriError> {
    let parts = split(uri)?;
    #[cfg(windows)]
    return windows_path(uri, &parts).map(PathBuf::from);
    #[cfg(not(windows))]
    {
        let bytes = unix_path(uri, &parts)?;
        #[cfg(unix)]
        return Ok(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)));
        #[cfg(not(unix))]
        return String::from_utf8(bytes).map(PathBuf::from).map_err(|_| bad(uri, "is not UTF-8"));
    }
}

/// The error for a path without a `file:` URI, or a URI without a path.
#[non_exhaustive]
#[derive(Debug)]
pub enum FileUriError {
    /// The path could not be made absolute.
    Path {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The URI is not that of a path on this machine.
    Uri {
        /// The URI.
        uri: String,
        /// The problem, as a predicate of "it".
        problem: &'static str,
    },
}

impl fmt::Display for FileUriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, source } => {
                write!(f, "path `{}` cannot be converted to a file uri: {source}", path.display())
            }
            Self::Uri { uri, problem } => write!(f, "uri `{uri}` is not a path: it {problem}"),
        }
    }
}

impl Error for FileUriError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Path { source, .. } => Some(source),
            Self::Uri { .. } => None,
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, FileUriError> {
    let parent = path.components().any(|component| component == std::path::Component::ParentDir);
    let absolute = if parent { path.canonicalize() } else { std::path::absolute(path) };
    absolute.map_err(|source| FileUriError::Path { path: path.to_owned(), source })
}

fn from_absolute(path: &Path) -> Result<String, FileUriError> {
    #[cfg(unix)]
    return Ok(unix_uri(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())));
    #[cfg(not(unix))]
    {
        let error = |kind: io::ErrorKind, why: &str| FileUriError::Path {
            path: path.to_owned(),
            source: io::Error::new(kind, why.to_owned()),
        };
        let text = path.to_str().ok_or_else(|| error(io::ErrorKind::InvalidData, "it is not Unicode"))?;
        if cfg!(windows) {
            windows_uri(text).ok_or_else(|| error(io::ErrorKind::InvalidInput, "it has no drive or share"))
        } else {
            Ok(unix_uri(text.as_bytes()))
        }
    }
}

/// The characters of a path segment that are not percent-encoded.
const SEGMENT: Set = Set::UNRESERVED.and(Set::of(b"!$&'()*+,;=:@"));

#[cfg_attr(windows, allow(dead_code, reason = "tested everywhere"))]
fn unix_uri(path: &[u8]) -> String {
    let mut uri = "file://".to_owned();
    for segment in path.split(|&byte| byte == b'/').filter(|segment| !matches!(*segment, b"" | b".")) {
        uri.push('/');
        uri.push_str(&encode_bytes(segment, SEGMENT));
    }
    if uri.len() == "file://".len() {
        uri.push('/');
    }
    uri
}

/// Converts `C:\a`, `\\server\share\a` and the `\\?\` forms of both.
#[cfg_attr(not(windows), allow(dead_code, reason = "tested everywhere"))]
fn windows_uri(path: &str) -> Option<String> {
    let path = path.replace('/', "\\");
    let (host, rest) = if let Some(unc) = path.strip_prefix(r"\\?\UNC\") {
        unc.split_once('\\').unwrap_or((unc, ""))
    } else if let Some(verbatim) = path.strip_prefix(r"\\?\") {
        ("", verbatim)
    } else if let Some(unc) = path.strip_prefix(r"\\") {
        unc.split_once('\\').unwrap_or((unc, ""))
    } else {
        ("", path.as_str())
    };
    let mut segments = rest.split('\\').filter(|segment| !segment.is_empty()).peekable();
    let has_drive = matches!(segments.peek()?.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    // `\\.\` are devices.
    if host.is_empty() != has_drive || matches!(host, "." | "?") {
        return None;
    }
    let mut uri = format!("file://{}", encode_bytes(host.as_bytes(), Set::UNRESERVED));
    for segment in segments {
        uri.push('/');
        uri.push_str(&encode_bytes(segment.as_bytes(), SEGMENT));
    }
    if has_drive && uri.len() == "file:///C:".len() {
        uri.push('/');
    }
    Some(uri)
}

/// The host, which may be empty, and the decoded path segments.
struct Parts {
    host: String,
    segments: Vec<Vec<u8>>,
}

fn split(uri: &str) -> Result<Parts, FileUriError> {
    let scheme = uri.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let after = scheme.map(|_| &uri[5..]).ok_or_else(|| bad(uri, "does not start with `file:`"))?;
    if uri
        .as_bytes()
        .iter()
        .enumerate()
        .any(|(i, &byte)| byte == b'%' && triplet(uri.as_bytes(), i).is_none())
    {
        return Err(bad(uri, "has a `%` without two hexadecimal digits"));
    }
    if after.contains(['?', '#']) {
        return Err(bad(uri, "has a query or a fragment; encode `?` as `%3F` and `#` as `%23` in names"));
    }
    let (host, path) = match after.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", after),
    };
    let path = path.strip_prefix('/').ok_or_else(|| bad(uri, "is not absolute; start the path with `/`"))?;
    let host = normalise(host).unwrap_or_default().to_ascii_lowercase();
    let mut segments = Vec::new();
    for segment in path.split('/') {
        let segment = decode_bytes(segment).into_owned();
        match segment.as_slice() {
            b"" => continue,
            b"." | b".." => return Err(bad(uri, "has a `.` or `..` segment")),
            other if other.contains(&b'/') || other.contains(&0) => {
                return Err(bad(uri, "has an encoded `/` or NUL in a name"));
            }
            _ => segments.push(segment),
        }
    }
    Ok(Parts { host: if host == "localhost" { String::new() } else { host }, segments })
}

#[cfg_attr(windows, allow(dead_code, reason = "tested everywhere"))]
fn unix_path(uri: &str, parts: &Parts) -> Result<Vec<u8>, FileUriError> {
    if !parts.host.is_empty() {
        return Err(bad(uri, "is on another host"));
    }
    let mut path = vec![b'/'];
    path.extend(parts.segments.join(&b'/'));
    Ok(path)
}

#[cfg_attr(not(windows), allow(dead_code, reason = "tested everywhere"))]
fn windows_path(uri: &str, parts: &Parts) -> Result<String, FileUriError> {
    let mut names = Vec::new();
    for (i, segment) in parts.segments.iter().enumerate() {
        let name = str::from_utf8(segment).map_err(|_| bad(uri, "is not UTF-8"))?;
        let drive = i == 0 && parts.host.is_empty();
        if name.contains('\\') || (name.contains(':') && !drive) {
            return Err(bad(uri, "has a `\\` or `:` in a name"));
        }
        names.push(name);
    }
    if !parts.host.is_empty() {
        if names.is_empty() || parts.host.contains(['%', '\\']) || matches!(parts.host.as_str(), "." | "..") {
            return Err(bad(uri, "names no share of a server"));
        }
        return Ok(format!(r"\\{}\{}", parts.host, names.join("\\")));
    }
    match names.first().map(|drive| drive.as_bytes()) {
        Some([letter, b':']) if letter.is_ascii_alphabetic() => {
            let slash = if names.len() == 1 { "\\" } else { "" };
            Ok(names.join("\\") + slash)
        }
        _ => Err(bad(uri, "has no drive; write `file:///C:/…`")),
    }
}

fn bad(uri: &str, problem: &'static str) -> FileUriError {
    FileUriError::Uri { uri: uri.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_unix_there_and_back() {
        for (path, uri) in [
            ("/", "file:///"),
            ("/srv/bob", "file:///srv/bob"),
            ("/a b/c#d?e%f", "file:///a%20b/c%23d%3Fe%25f"),
            ("/été/日本", "file:///%C3%A9t%C3%A9/%E6%97%A5%E6%9C%AC"),
            ("/back\\slash", "file:///back%5Cslash"),
            ("/a:b@c,d;e=f", "file:///a:b@c,d;e=f"),
        ] {
            assert_eq!(unix_uri(path.as_bytes()), uri);
            assert_eq!(unix_path(uri, &split(uri).unwrap()).unwrap(), path.as_bytes());
        }
        assert_eq!(unix_uri(b"/a//b/./c/"), "file:///a/b/c");
        assert_eq!(unix_uri(b"/caf\xE9"), "file:///caf%E9");
        assert_eq!(unix_path("", &split("FILE://LocalHost/a//b/").unwrap()).unwrap(), b"/a/b");
        assert_eq!(unix_path("", &split("file:/a").unwrap()).unwrap(), b"/a");
    }

    #[test]
    fn paths_of_windows_there_and_back() {
        for (path, uri) in [
            (r"C:\", "file:///C:/"),
            (r"C:\Users\Bob Smith", "file:///C:/Users/Bob%20Smith"),
            (r"c:\a#b", "file:///c:/a%23b"),
            (r"\\server\share", "file://server/share"),
            (r"\\server\share\é", "file://server/share/%C3%A9"),
        ] {
            assert_eq!(windows_uri(path).as_deref(), Some(uri), "{path}");
            assert_eq!(windows_path(uri, &split(uri).unwrap()).unwrap(), path);
        }
        for (path, uri) in [
            ("C:/a/b", Some("file:///C:/a/b")),
            (r"\\?\C:\a", Some("file:///C:/a")),
            (r"\\?\UNC\server\share\a", Some("file://server/share/a")),
            (r"\\.\COM1", None),
            (r"\\?\GLOBALROOT\Device", None),
            (r"\\server", None),
            (r"\a", None),
            ("a", None),
        ] {
            assert_eq!(windows_uri(path).as_deref(), uri, "{path}");
        }
        for uri in [
            "file:///a",
            "file:///",
            "file:///CC:/a",
            "file:///C:/a%5C..%5Cb",
            "file:///C:/a:stream",
            "file://server",
            "file://server/",
            "file://server/C:/a",
            "file://.%5C/a",
            "file:///C:/%FF",
        ] {
            let path = split(uri).and_then(|parts| windows_path(uri, &parts));
            assert!(path.is_err(), "{uri} {path:?}");
        }
    }

    #[test]
    fn what_is_no_path() {
        for (uri, problem) in [
            ("http://a/b", "does not start with `file:`"),
            ("/etc", "does not start with `file:`"),
            ("fil", "does not start with `file:`"),
            ("é", "does not start with `file:`"),
            ("file:a", "is not absolute; start the path with `/`"),
            ("file://localhost", "is not absolute; start the path with `/`"),
            ("file://other/a", "is on another host"),
            ("file:///a/../b", "has a `.` or `..` segment"),
            ("file:///a/%2e%2E/b", "has a `.` or `..` segment"),
            ("file:///a%2fb", "has an encoded `/` or NUL in a name"),
            ("file:///a%00", "has an encoded `/` or NUL in a name"),
            ("file:///a%", "has a `%` without two hexadecimal digits"),
            ("file:///a?b", "has a query or a fragment; encode `?` as `%3F` and `#` as `%23` in names"),
        ] {
            match split(uri).and_then(|parts| unix_path(uri, &parts)) {
                Err(FileUriError::Uri { problem: found, .. }) => assert_eq!(found, problem, "{uri}"),
                other => panic!("{uri} {other:?}"),
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_relative_path_is_resolved() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(path_from_uri(&uri_from_path("a b").unwrap()).unwrap(), here.join("a b"));
        let parent = uri_from_path("src/..").unwrap();
        assert_eq!(path_from_uri(&parent).unwrap(), here.canonicalize().unwrap());
        assert_eq!(
            uri_from_path("no/such/..").unwrap_err().to_string(),
            "path `no/such/..` cannot be converted to a file uri: No such file or directory (os error 2)"
        );
        assert!(uri_from_path("").is_err());
    }

    #[cfg(unix)]
    proptest::proptest! {
        #[test]
        fn every_path_comes_back(path in "(/[^/\0]{1,8}){1,4}") {
            let path = Path::new(&path);
            let dots = path.to_str().is_some_and(|path| path.split('/').any(|name| matches!(name, "." | "..")));
            proptest::prop_assume!(!dots);
            proptest::prop_assert_eq!(path_from_uri(&uri_from_path(path).unwrap()).unwrap(), path);
        }
    }
}
