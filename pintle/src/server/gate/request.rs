use std::{
    cell::{Cell, OnceCell},
    fmt,
};

use pintle_types::{JsonObject, schema::ToolAnnotations};
use serde_json::Value;

use super::{decision::Access, unique_json};
use crate::server::{Authenticated, Entry, Principal, Scope};

/// A request that a [`Gate`](crate::server::Gate) decides about.
#[non_exhaustive]
pub struct GateRequest<'a> {
    /// The caller.
    pub scope: Scope<'a>,
    /// The use that the caller makes of the entry.
    pub access: Access,
    /// The entry, as clients see it in lists.
    pub entry: Entry<'a>,
    /// The name of the [provider](crate::server::Provider) that has the entry; `None` for entries of the server itself.
    pub backend: Option<&'a str>,
    /// The URI that is read, watched or completed, if the entry is a resource or a template.
    pub uri: Option<&'a str>,
    /// Whether a decision that was made is made again, such as for each notification of a subscription.
    pub(crate) is_repeated: bool,
    /// Whether the user has to confirm the request and cannot be asked.
    is_unconfirmed: Cell<bool>,
    /// Whether a gate has reported what it decided.
    is_reported: Cell<bool>,
    /// The arguments of a call, as text.
    text: Option<&'a str>,
    arguments: OnceCell<Result<JsonObject, String>>,
    /// The rule by which a gate has decided, for when it counts the request; see [`note_rule`](Self::note_rule).
    rule: Cell<Option<(u64, Option<usize>)>>,
}

impl<'a> GateRequest<'a> {
    pub(crate) fn new(scope: Scope<'a>, access: Access, entry: Entry<'a>) -> Self {
        let (backend, uri, text, arguments) = (None, None, None, OnceCell::new());
        let (is_repeated, is_unconfirmed, is_reported) = (false, Cell::new(false), Cell::new(false));
        let rule = Cell::new(None);
        Self {
            scope,
            access,
            entry,
            backend,
            uri,
            is_repeated,
            is_unconfirmed,
            is_reported,
            text,
            arguments,
            rule,
        }
    }

    pub(crate) fn backend(self, backend: Option<&'a str>) -> Self {
        Self { backend, ..self }
    }

    pub(crate) fn uri(self, uri: Option<&'a str>) -> Self {
        Self { uri, ..self }
    }

    pub(crate) fn repeated(self) -> Self {
        Self { is_repeated: true, ..self }
    }

    /// Sets that the user has to confirm the request and cannot be asked.
    pub(crate) fn set_unconfirmed(&self) {
        self.is_unconfirmed.set(true);
    }

    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.is_unconfirmed.get()
    }

    /// Notes that a gate has reported what it decided.
    pub(crate) fn set_reported(&self) {
        self.is_reported.set(true);
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.is_reported.get()
    }

    pub(crate) fn arguments_text(self, text: Option<&'a str>) -> Self {
        Self { text, ..self }
    }

    /// Returns whether the caller is local, anonymous or a named principal.
    pub fn identity(&self) -> Principal<'a> {
        self.scope.identity()
    }

    /// Returns whether the caller has a right. An anonymous caller has none.
    pub fn has(&self, right: &str) -> bool {
        self.scope.extensions.get::<Authenticated>().is_some_and(|caller| caller.has(right))
    }

    /// Returns the name of the tool, prompt or method, the URI of the resource, or the URI template.
    pub fn name(&self) -> &'a str {
        match self.entry {
            Entry::Resource(_) | Entry::Template(_) => self.uri.unwrap_or_else(|| self.entry.name()),
            _ => self.entry.name(),
        }
    }

    /// Returns the hints of a tool. They are statements of the server that has it, and may be wrong.
    pub fn hints(&self) -> Option<&'a ToolAnnotations> {
        match self.entry {
            Entry::Tool(tool) => tool.annotations.as_ref(),
            _ => None,
        }
    }

    /// Returns the arguments of a call, with the defaults that the schema of the tool has for those that were omitted; the params of a
    /// [method](Entry::Method). `None` for all other requests.
    ///
    /// Arguments with a repeated member, at any depth, have two meanings: such a call is denied, whatever the gate decides.
    pub fn arguments(&self) -> Option<&JsonObject> {
        let text = self.text?;
        let parse = || {
            let mut arguments = unique_json::parse_object("arguments", text)?;
            if let Entry::Tool(tool) = self.entry {
                fill_defaults(&mut arguments, &tool.input_schema, MAX_DEPTH);
            }
            Ok(arguments)
        };
        self.arguments.get_or_init(parse).as_ref().ok()
    }

    /// Notes the number of the rule by which the rules `of` have decided; `None` is their default. That of the last gate is kept.
    pub(crate) fn note_rule(&self, of: u64, number: Option<usize>) {
        self.rule.set(Some((of, number)));
    }

    /// Returns the number of the rule by which the rules `of` have decided, if it was noted.
    pub(crate) fn noted_rule(&self, of: u64) -> Option<Option<usize>> {
        self.rule.get().filter(|(rules, _)| *rules == of).map(|(_, number)| number)
    }

    /// Returns why the arguments cannot be judged, if a gate has read them.
    pub(crate) fn arguments_fault(&self) -> Option<&str> {
        self.arguments.get()?.as_ref().err().map(String::as_str)
    }
}

/// The depth to which defaults are filled in.
const MAX_DEPTH: u8 = 16;

/// Adds the defaults of omitted properties.
fn fill_defaults(object: &mut JsonObject, schema: &JsonObject, depth: u8) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        match (object.get_mut(name), property) {
            (None, Value::Object(property)) => {
                if let Some(default) = property.get("default") {
                    object.insert(name.clone(), default.clone());
                }
            }
            (Some(Value::Object(value)), Value::Object(property)) if depth > 0 => {
                fill_defaults(value, property, depth - 1);
            }
            _ => {}
        }
    }
}

impl fmt::Debug for GateRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateRequest")
            .field("identity", &self.identity())
            .field("access", &self.access)
            .field("name", &self.name())
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}
