//! An OpenAPI document, with the files that it refers to.
//!
//! All files are read when the document is: what they contain cannot change between two uses, and [`Node`]s borrow from them.

mod files;
mod node;
mod read_files;
mod version;

use std::path::Path;

use serde_json::Value;

use crate::OpenApiError;

pub(crate) use node::{Node, RefKey};
pub use read_files::DocumentFiles;
pub(crate) use version::Version;

/// The name of a document without a file, in messages.
const TEXT: &str = "the document";

/// A document and its files. The first is the one that was named.
#[derive(Debug)]
pub(crate) struct Document {
    files: Vec<DocumentFile>,
    pub(crate) version: Version,
    /// Empty without files.
    pub(crate) read_files: DocumentFiles,
}

/// A file, or why there is none.
#[derive(Debug)]
struct DocumentFile {
    /// The path below the folder of the document, with `/`.
    path: String,
    value: Result<Value, String>,
}

impl Document {
    /// Reads a document from a text. It has no other files.
    pub(crate) fn from_text(text: &str) -> Result<Self, OpenApiError> {
        let root = files::parse(text).map_err(|reason| OpenApiError::document(TEXT, reason))?;
        Self::from_value(root)
    }

    pub(crate) fn from_value(root: Value) -> Result<Self, OpenApiError> {
        Self::of(vec![DocumentFile { path: TEXT.to_owned(), value: Ok(root) }])
    }

    /// Reads a document from a file, and the files in its folder that it refers to.
    pub(crate) fn from_file(path: &Path) -> Result<Self, OpenApiError> {
        let mut read_files = DocumentFiles::default();
        let document = Self::of(files::read(path, &mut read_files)?)?;
        Ok(Self { read_files, ..document })
    }

    fn of(files: Vec<DocumentFile>) -> Result<Self, OpenApiError> {
        let root = files.first().map(|file| (&file.path, &file.value));
        let Some((path, Ok(root))) = root else {
            return Err(OpenApiError::document(TEXT, "there is none"));
        };
        let version = Version::of(root).map_err(|reason| OpenApiError::document(path, reason))?;
        Ok(Self { files, version, read_files: DocumentFiles::default() })
    }

    pub(crate) fn root(&self) -> Node<'_> {
        Node::new(self, 0, self.value(0).unwrap_or(&Value::Null))
    }

    fn value(&self, file: usize) -> Result<&Value, &str> {
        match self.files.get(file).map(|file| &file.value) {
            Some(Ok(value)) => Ok(value),
            Some(Err(reason)) => Err(reason),
            None => Err("there is no such file"),
        }
    }

    /// Returns the file of a path below the folder.
    fn find(&self, path: &str) -> Option<usize> {
        self.files.iter().position(|file| file.path == path)
    }
}
