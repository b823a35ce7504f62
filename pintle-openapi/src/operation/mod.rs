//! The operations of a document.

mod body;
mod media;
mod parameter;
mod path;
mod security;
mod servers;

use crate::document::{Document, Node, Version};

pub(crate) use body::{Body, BodyKind, BodyShape, BodySource, Member, PartStyle};
pub(crate) use media::{Media, essence};
pub(crate) use parameter::{Encoding, Parameter, ParameterSource, Place, Style, is_of_connection, sources};
pub(crate) use path::{PathTemplate, Piece};
pub(crate) use security::{Carrier, Scheme, schemes, wanted};
pub(crate) use servers::{Base, Servers};

/// The methods that an operation may have.
const METHODS: &[&str] = &["get", "put", "post", "delete", "options", "head", "patch"];

/// An operation, as the document has it.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    /// In lower case.
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    pub(crate) node: Node<'a>,
    /// The path's part of the document, which has parameters and servers for all of its operations.
    pub(crate) item: Node<'a>,
}

impl<'a> Operation<'a> {
    /// Returns the method and the path, which no other operation has both.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.method.to_ascii_uppercase(), self.path)
    }

    pub(crate) fn id(&self) -> Option<&'a str> {
        self.node.text("operationId").filter(|id| !id.is_empty())
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = &'a str> {
        self.node.items_of("tags").filter_map(|tag| tag.value.as_str())
    }

    /// Returns the words of OpenAPI 3.2 that are ignored in what is sent and answered.
    pub(crate) fn new_words(&self) -> Vec<&'static str> {
        let responses = self.node.members_of("responses").map(|(_, response)| response);
        let holders = self.node.get("requestBody").into_iter().chain(responses);
        let media = holders
            .filter_map(|holder| holder.resolve().ok())
            .flat_map(|holder| holder.members_of("content"));
        let media: Vec<_> = media.map(|(_, media)| media).collect();
        let is_there = |word: &&str| media.iter().any(|media| media.get(word).is_some());
        ["$ref", "itemEncoding", "itemSchema", "prefixEncoding"].into_iter().filter(is_there).collect()
    }

    /// Returns a member of `x-mcp-…`.
    pub(crate) fn own(&self, name: &str) -> Option<Node<'a>> {
        self.node.get(&format!("x-mcp-{name}"))
    }
}

/// The operations of a document, and what cannot be read of it.
#[derive(Default)]
pub(crate) struct Operations<'a> {
    pub(crate) operations: Vec<Operation<'a>>,
    /// Operations that cannot be read, and why.
    pub(crate) left_out: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
}

impl<'a> Operations<'a> {
    /// Returns the operations in the order of the document.
    pub(crate) fn of(document: &'a Document) -> Self {
        let mut found = Self::default();
        let root = document.root();
        if document.version == Version::V32 {
            let warning = "OpenAPI 3.2 is read as 3.1: what is new in it is left out";
            found.warnings.push(warning.to_owned());
            if root.get("$self").is_some() {
                let warning = "`$self` is ignored: references are relative to the file";
                found.warnings.push(warning.to_owned());
            }
        }
        if !root.get("paths").is_some_and(|paths| paths.value.is_object()) {
            found.warnings.push("the document has no `paths`, and so no operations".to_owned());
        }
        for (path, item) in root.members_of("paths") {
            if path.starts_with("x-") {
                continue;
            }
            match item.resolve() {
                Ok(item) => found.of_path(path, item),
                Err(reason) => found.left_out.push((path.to_owned(), reason)),
            }
        }
        found
    }

    fn of_path(&mut self, path: &'a str, item: Node<'a>) {
        for (name, node) in item.members() {
            if let Some(method) = METHODS.iter().find(|method| **method == name) {
                if node.value.is_object() {
                    self.operations.push(Operation { method, path, node, item });
                } else {
                    let key = format!("{} {path}", name.to_ascii_uppercase());
                    self.left_out.push((key, "it is not an object".to_owned()));
                }
            } else if matches!(name, "trace" | "query" | "additionalOperations") {
                let key = format!("{} {path}", name.to_ascii_uppercase());
                self.left_out.push((key, format!("`{name}` is not supported")));
            }
        }
    }
}
