//! Reading files of a folder.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use pintle_yaml::Limits;
use serde_json::Value;

use super::{DocumentFile, DocumentFiles};
use crate::OpenApiError;

/// The limit of all files of a document, in bytes. The largest document that was seen has 20 MB.
const MAX_BYTES: u64 = 64 << 20;
/// The limit of files of a document.
const MAX_FILES: usize = 512;
/// The limit of what aliases of a YAML file stand for, in bytes.
const MAX_ALIASED: usize = 4 << 20;

/// Reads a document, and the files that it refers to, directly or not. The states of all of them are noted.
pub(super) fn read(path: &Path, states: &mut DocumentFiles) -> Result<Vec<DocumentFile>, OpenApiError> {
    let shown = path.display().to_string();
    let failed = |error| OpenApiError::Io { file: shown.clone(), error };
    states.note(path.to_owned());
    let path = fs::canonicalize(path).map_err(failed)?;
    let no_file = || failed(io::Error::from(io::ErrorKind::IsADirectory));
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(no_file()) };
    let mut left = MAX_BYTES;
    let text = read_text(&path, &mut left).map_err(failed)?;
    let root = parse(&text).map_err(|reason| OpenApiError::document(shown.clone(), reason))?;
    let mut files = vec![DocumentFile { path: name.to_string_lossy().into_owned(), value: Ok(root) }];
    let mut known: HashSet<String> = files.iter().map(|file| file.path.clone()).collect();
    let mut next = 0;
    while let Some(file) = files.get(next) {
        next += 1;
        let Ok(value) = &file.value else { continue };
        for path in referred(&file.path, value) {
            if known.insert(path.clone()) {
                if files.len() == MAX_FILES {
                    let reason = format!("it refers to more than {MAX_FILES} files; put them into fewer");
                    return Err(OpenApiError::document(shown, reason));
                }
                states.note(folder.join(&path));
                let value = read_below(folder, &path, &mut left);
                files.push(DocumentFile { path, value });
            }
        }
    }
    Ok(files)
}

/// Returns the paths that a file refers to. Text that only looks like a reference may be among them.
fn referred(from: &str, value: &Value) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), vec![value]);
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let file = reference.split('#').next().unwrap_or_default();
                    found.extend(path_of(from, file).ok().filter(|path| path != from));
                }
                rest.extend(members.values());
            }
            _ => {}
        }
    }
    // In the order of the text.
    found.reverse();
    found
}

/// Returns the path below the folder that a reference from a file leads to.
///
/// # Errors
///
/// It leads out of the folder, or to another machine.
pub(super) fn path_of(from: &str, reference: &str) -> Result<String, String> {
    if reference.is_empty() {
        return Ok(from.to_owned());
    }
    let path = percent_encoding::percent_decode_str(reference).decode_utf8_lossy().replace('\\', "/");
    if path.split('/').next().is_some_and(|first| first.contains(':')) || path.starts_with("//") {
        return Err("nothing is fetched; put it into a file beside the document".to_owned());
    }
    let outside = || "it is outside of the folder of the document; put it there".to_owned();
    if path.starts_with('/') {
        return Err(outside());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or_else(outside)?),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

fn read_below(folder: &Path, path: &str, left: &mut u64) -> Result<Value, String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let path: PathBuf = fs::canonicalize(folder.join(path)).map_err(unreadable)?;
    // A link may lead anywhere.
    if !path.starts_with(folder) {
        return Err("it is outside of the folder of the document; put it there".to_owned());
    }
    parse(&read_text(&path, left).map_err(unreadable)?)
}

/// Reads a text, at most so many bytes.
fn read_text(path: &Path, left: &mut u64) -> io::Result<String> {
    // A pipe would be waited for.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    File::open(path)?.take(*left + 1).read_to_string(&mut text)?;
    *left = left.checked_sub(text.len() as u64).ok_or_else(|| {
        io::Error::other(format!("the document has more than {MAX_BYTES} bytes with its files"))
    })?;
    Ok(text)
}

/// Parses a text: JSON if it begins as an object of it, else YAML.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"));
    }
    let mut limits = Limits::default();
    limits.bytes = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    limits.aliased = MAX_ALIASED;
    pintle_yaml::parse(text, &limits).map_err(|error| error.to_string())
}
