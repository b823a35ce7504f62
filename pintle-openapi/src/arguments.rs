//! The arguments of a tool: which there are, what they are called, and their schema.

use std::collections::{HashMap, HashSet};

use pintle::types::JsonObject;
use serde_json::{Map, Value, json};

use crate::{
    document::{Node, Version},
    names,
    operation::{Body, BodyShape, BodySource, Media, Member, Parameter, ParameterSource, Place},
    schema::{Direction, SchemaWriter, is_hidden},
    visible::visible,
};

/// The arguments of an operation, and what they become.
pub(crate) struct Arguments {
    pub(crate) schema: JsonObject,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
}

/// A property of a body that is an argument of its own: its name, its schema, and whether it is required.
type Lifted<'a> = (&'a str, Node<'a>, bool);

impl Arguments {
    pub(crate) fn new<'a>(
        sources: &[ParameterSource<'a>],
        body: Option<BodySource<'a>>,
        version: Version,
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut sources = sources.to_vec();
        sources.sort_by_key(|source| source.place);
        let lifted: Option<Vec<Lifted<'a>>> = body.and_then(|body| body.lifted()).map(|members| {
            members.into_iter().filter(|(_, node, _)| !is_hidden(*node, Direction::Input)).collect()
        });
        let mut unnamed: Vec<_> = sources.iter().map(|source| (source.name, source.place.as_str())).collect();
        match (&lifted, body) {
            (Some(members), _) => unnamed.extend(members.iter().map(|(name, ..)| (*name, "body"))),
            (None, Some(_)) => unnamed.push(("body", "body")),
            (None, None) => {}
        }
        let mut names = name(&unnamed).into_iter();
        let mut schema = InputSchema::new(version);
        let parameters = sources.iter().zip(names.by_ref());
        let parameters = parameters.map(|(source, name)| schema.parameter(source, name)).collect();
        let body = body.map(|source| match lifted {
            Some(members) => {
                let members = members.into_iter().zip(names);
                let members = members.map(|(member, name)| schema.member(&source, member, name)).collect();
                source.body(version, BodyShape::Members(members))
            }
            None => {
                let argument = names.next().unwrap_or_else(|| "body".to_owned());
                schema.whole_body(&source, &argument);
                source.body(version, BodyShape::Whole(argument))
            }
        });
        Self { schema: schema.finish(warnings), parameters, body }
    }
}

/// Names arguments by their wanted names and places. Those with the same name get their places behind it, all of them, so that none is taken
/// for another one.
fn name(unnamed: &[(&str, &str)]) -> Vec<String> {
    let plain: Vec<String> = unnamed.iter().map(|(wanted, _)| names::accepted(wanted)).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    plain.iter().for_each(|name| *count.entry(name).or_default() += 1);
    let is_shared = |name: &String| count.get(name.as_str()).is_some_and(|count| *count > 1);
    let mut taken: HashSet<String> = plain.iter().filter(|name| !is_shared(name)).cloned().collect();
    let named = plain.iter().zip(unnamed).map(|(name, (_, place))| {
        if !is_shared(name) {
            return name.clone();
        }
        let placed = names::accepted(&format!("{name}_{place}"));
        let numbered = |number| names::accepted(&format!("{placed}_{number}"));
        names::free(placed.clone(), numbered, &mut taken)
    });
    named.collect()
}

/// The schema of the arguments, while they are added.
struct InputSchema<'a> {
    writer: SchemaWriter<'a>,
    version: Version,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl<'a> InputSchema<'a> {
    fn new(version: Version) -> Self {
        let writer = SchemaWriter::new(version, Direction::Input);
        Self { writer, version, properties: Map::new(), required: Vec::new() }
    }

    fn parameter(&mut self, source: &ParameterSource<'a>, argument: String) -> Parameter {
        let mut schema = source.schema.map_or_else(|| json!({}), |node| self.writer.schema(node));
        describe(&mut schema, source.node.text("description"));
        if source.node.flag("deprecated") == Some(true) {
            note(&mut schema, "deprecated", true.into());
        }
        let default = default(source.schema).filter(|_| source.is_required);
        self.add(&argument, schema, source.is_required && default.is_none());
        Parameter {
            argument,
            name: source.name.to_owned(),
            place: source.place,
            encoding: source.encoding,
            allow_reserved: source.place == Place::Query && source.node.flag("allowReserved") == Some(true),
            default,
        }
    }

    fn member(&mut self, source: &BodySource<'a>, member: Lifted<'a>, argument: String) -> Member {
        let (name, node, is_required) = member;
        let mut schema = self.writer.schema(node);
        let part = source.part(name, self.version).filter(|_| source.media() == Media::Multipart);
        if part.is_some_and(|part| part.is_binary) {
            let file = json!({ "type": "string", "contentEncoding": "base64" });
            let is_list = schema.get("type").is_some_and(|kind| kind == "array");
            let description = schema.get("description").cloned();
            schema = if is_list { json!({ "type": "array", "items": file }) } else { file };
            if let Some(description) = description {
                note(&mut schema, "description", description);
            }
        }
        let default = default(Some(node)).filter(|_| is_required);
        self.add(&argument, schema, is_required && default.is_none());
        Member { argument, name: name.to_owned(), default }
    }

    fn whole_body(&mut self, source: &BodySource<'a>, argument: &str) {
        let mut schema = match (source.media(), source.schema) {
            (Media::Binary | Media::Image | Media::Audio, _) => {
                json!({ "type": "string", "contentEncoding": "base64" })
            }
            (_, Some(node)) => self.writer.schema(node),
            (Media::Text, None) => json!({ "type": "string" }),
            (Media::Form | Media::Multipart, None) => json!({ "type": "object" }),
            (Media::Json, None) => json!({}),
        };
        if schema.get("description").is_none() {
            describe(&mut schema, Some(source.description.unwrap_or("The body of the request.")));
        }
        self.add(argument, schema, source.is_required);
    }

    fn add(&mut self, argument: &str, schema: Value, is_required: bool) {
        if is_required {
            self.required.push(argument.into());
        }
        self.properties.insert(argument.to_owned(), schema);
    }

    fn finish(self, warnings: &mut Vec<String>) -> JsonObject {
        let mut root = json!({ "type": "object", "properties": self.properties });
        if !self.required.is_empty() {
            note(&mut root, "required", self.required.into());
        }
        note(&mut root, "additionalProperties", false.into());
        let mut written = self.writer.finish(root);
        if !written.definitions.is_empty() {
            note(&mut written.schema, "$defs", written.definitions.into());
        }
        warnings.extend(written.warnings);
        if written.is_cut {
            warnings.push(
                "its arguments are described by too many schemas; the innermost accept anything".to_owned(),
            );
        }
        match written.schema {
            Value::Object(root) => root,
            _ => JsonObject::new(),
        }
    }
}

fn describe(schema: &mut Value, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        note(schema, "description", visible(text.trim()).into());
    }
}

/// Sets a keyword of a schema that is an object.
fn note(schema: &mut Value, word: &str, value: Value) {
    if let Value::Object(members) = schema {
        members.insert(word.to_owned(), value);
    }
}

fn default(schema: Option<Node<'_>>) -> Option<Value> {
    let schema = schema?;
    let own = schema.get("default").or_else(|| schema.resolve().ok()?.get("default"))?;
    Some(own.value.clone()).filter(|default| !default.is_null())
}
