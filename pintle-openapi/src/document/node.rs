use serde::Deserialize;
use serde_json::Value;

use super::{Document, files};

/// The limit of references that lead to references.
const MAX_HOPS: usize = 32;

/// A part of a document, with the file that it is in.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    document: &'a Document,
    file: usize,
    pub(crate) value: &'a Value,
}

/// The target of a reference: a file, and a JSON pointer in it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct RefKey {
    file: usize,
    pointer: String,
}

impl RefKey {
    /// Returns the last part of the pointer, or `schema` for a whole file.
    pub(crate) fn name(&self) -> &str {
        self.pointer.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("schema")
    }
}

impl<'a> Node<'a> {
    pub(super) fn new(document: &'a Document, file: usize, value: &'a Value) -> Self {
        Self { document, file, value }
    }

    /// Returns a member of an object.
    pub(crate) fn get(self, name: &str) -> Option<Self> {
        self.value.get(name).map(|value| Self { value, ..self })
    }

    /// Returns a member that is a text.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.value.get(name)?.as_str()
    }

    /// Returns a member that is `true` or `false`.
    pub(crate) fn flag(self, name: &str) -> Option<bool> {
        self.value.get(name)?.as_bool()
    }

    /// Returns a member that is one of these values.
    pub(crate) fn read<T: Deserialize<'a>>(self, name: &str) -> Option<T> {
        T::deserialize(self.value.get(name)?).ok()
    }

    /// Returns the items of a list; none of anything else.
    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        self.value.as_array().into_iter().flatten().map(move |value| Self { value, ..self })
    }

    /// Returns the members of an object; none of anything else.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, Self)> {
        let members = self.value.as_object().into_iter().flatten();
        members.map(move |(name, value)| (name.as_str(), Self { value, ..self }))
    }

    /// Returns the items of a member that is a list.
    pub(crate) fn items_of(self, name: &str) -> impl Iterator<Item = Self> {
        self.get(name).into_iter().flat_map(Self::items)
    }

    /// Returns the members of a member that is an object.
    pub(crate) fn members_of(self, name: &str) -> impl Iterator<Item = (&'a str, Self)> {
        self.get(name).into_iter().flat_map(Self::members)
    }

    /// Follows references to what is none.
    pub(crate) fn resolve(self) -> Result<Self, String> {
        self.follow().map(|(_, node)| node)
    }

    /// Follows references to what is none. Returns the last of them too.
    pub(crate) fn follow(self) -> Result<(Option<RefKey>, Self), String> {
        let (mut key, mut node) = (None, self);
        for _ in 0..MAX_HOPS {
            let Some(reference) = node.text("$ref") else { return Ok((key, node)) };
            let (found, target) = node.find(reference).map_err(|reason| {
                let shown: String = reference.chars().take(200).collect();
                format!("`{shown}` leads nowhere: {reason}")
            })?;
            (key, node) = (Some(found), target);
        }
        Err(format!("more than {MAX_HOPS} references lead to each other; refer to what is none"))
    }

    fn find(self, reference: &str) -> Result<(RefKey, Self), String> {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let files = &self.document.files;
        let from = files.get(self.file).map_or("", |file| file.path.as_str());
        let file = match path {
            "" => self.file,
            path => {
                let path = files::path_of(from, path)?;
                self.document
                    .find(&path)
                    .ok_or("a text has no other files; read the document from its file")?
            }
        };
        let pointer = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy().into_owned();
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err("it is an anchor; write a JSON pointer such as `#/components/schemas/Pet`".to_owned());
        }
        let value = self.document.value(file)?.pointer(&pointer).ok_or("there is no such part")?;
        Ok((RefKey { file, pointer }, Self { file, value, ..self }))
    }
}
