use pintle_types::{
    JsonObject, RawObject,
    schema::{Prompt, Resource, ResourceTemplate, Tool},
};

use super::prefix::Prefix;
use crate::server::{Entry, ListKind, Target};

/// The definition of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Definition {
    Tool(Tool),
    Prompt(Prompt),
    Resource(Resource),
    Template(ResourceTemplate),
}

impl Definition {
    /// Decodes an entry of a list.
    pub(crate) fn decode(list: ListKind, entry: &RawObject) -> Option<Self> {
        Some(match list {
            ListKind::Tools => Self::Tool(entry.decode().ok()?),
            ListKind::Prompts => Self::Prompt(entry.decode().ok()?),
            ListKind::Resources => Self::Resource(entry.decode().ok()?),
            ListKind::Templates => Self::Template(entry.decode().ok()?),
        })
    }

    /// Encodes an entry of a list.
    pub(crate) fn encode(&self) -> Result<RawObject, serde_json::Error> {
        match self {
            Self::Tool(tool) => RawObject::from_serialize(tool),
            Self::Prompt(prompt) => RawObject::from_serialize(prompt),
            Self::Resource(resource) => RawObject::from_serialize(resource),
            Self::Template(template) => RawObject::from_serialize(template),
        }
    }

    /// Returns the list that the entry is in, and its name, URI or URI template.
    pub(crate) fn key(&self) -> (ListKind, &str) {
        match self {
            Self::Tool(tool) => (ListKind::Tools, &tool.name),
            Self::Prompt(prompt) => (ListKind::Prompts, &prompt.name),
            Self::Resource(resource) => (ListKind::Resources, &resource.uri),
            Self::Template(template) => (ListKind::Templates, &template.uri_template),
        }
    }

    /// Creates the definition of an entry of which only the name is known.
    pub(crate) fn of_name(target: &Target<'_>) -> Option<Self> {
        let name = target.name();
        Some(match target {
            Target::Tool(_) => Self::Tool(Tool::new(name, JsonObject::new())),
            Target::Prompt(_) => Self::Prompt(Prompt::new(name)),
            Target::Resource(_) => Self::Resource(Resource::new(name, name)),
            Target::Template(_) => Self::Template(ResourceTemplate::new(name, name)),
            Target::Task(_) | Target::Method(_) => return None,
        })
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        match self {
            Self::Tool(tool) => Entry::Tool(tool),
            Self::Prompt(prompt) => Entry::Prompt(prompt),
            Self::Resource(resource) => Entry::Resource(resource),
            Self::Template(template) => Entry::Template(template),
        }
    }

    pub(super) fn prefix(&mut self, prefix: &Prefix) {
        let (list, key) = match self {
            Self::Tool(tool) => (ListKind::Tools, &mut tool.name),
            Self::Prompt(prompt) => (ListKind::Prompts, &mut prompt.name),
            Self::Resource(resource) => (ListKind::Resources, &mut resource.uri),
            Self::Template(template) => (ListKind::Templates, &mut template.uri_template),
        };
        *key = prefix.add(list, key);
    }
}
