use std::collections::HashMap;

use serde_json::Value;

use super::{Media, Operation, Style, media::essence};
use crate::document::{Node, Version};

/// The properties that are arguments of their own, at most.
const MAX_LIFTED: usize = 20;

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) content_type: String,
    pub(crate) kind: BodyKind,
    pub(crate) shape: BodyShape,
    /// Whether it is sent without any argument.
    pub(crate) is_required: bool,
}

/// How a body is written.
#[derive(Debug)]
pub(crate) enum BodyKind {
    Json,
    Form(HashMap<String, PartStyle>),
    Multipart(HashMap<String, PartStyle>),
    Text,
    /// The argument is base64.
    Binary,
}

/// Which arguments a body is made of.
#[derive(Debug)]
pub(crate) enum BodyShape {
    Whole(String),
    Members(Vec<Member>),
}

/// A property of a body, as an argument.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) argument: String,
    pub(crate) name: String,
    /// The value that is sent for a required property without one.
    pub(crate) default: Option<Value>,
}

/// How a part of a form is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartStyle {
    /// The style and whether it explodes, if the document has either.
    pub(crate) style: Option<(Style, bool)>,
    pub(crate) allow_reserved: bool,
    pub(crate) content_type: Option<String>,
    /// Whether the argument is base64.
    pub(crate) is_binary: bool,
}

/// The body of an operation, as the document has it.
#[derive(Clone, Copy)]
pub(crate) struct BodySource<'a> {
    media_type: &'a str,
    pub(crate) schema: Option<Node<'a>>,
    encoding: Option<Node<'a>>,
    pub(crate) description: Option<&'a str>,
    pub(crate) is_required: bool,
}

impl<'a> BodySource<'a> {
    /// Returns the body of an operation, in the media type that serves best. An operation that changes something and says nothing about its
    /// body may have any JSON.
    ///
    /// # Errors
    ///
    /// The reason why requests of the operation cannot be made.
    pub(crate) fn of(operation: &Operation<'a>) -> Result<Option<Self>, String> {
        let Some(node) = operation.node.get("requestBody") else {
            let is_change = matches!(operation.method, "post" | "put" | "patch");
            return Ok(is_change.then_some(Self {
                media_type: "application/json",
                schema: None,
                encoding: None,
                description: Some("The body of the request, which the API does not describe."),
                is_required: false,
            }));
        };
        let node = node.resolve()?;
        let description = node.text("description");
        let is_required = node.flag("required") == Some(true);
        let best = node.members_of("content").min_by_key(|(media_type, _)| Media::rank(media_type));
        let Some((media_type, content)) = best else { return Ok(None) };
        if Media::of(media_type) == Media::Multipart
            && !matches!(essence(media_type).as_str(), "multipart/form-data" | "multipart/*")
        {
            return Err(format!("its body is `{}`, which is not supported", essence(media_type)));
        }
        let (schema, encoding) = (content.get("schema"), content.get("encoding"));
        Ok(Some(Self { media_type, schema, encoding, description, is_required }))
    }

    pub(crate) fn media(&self) -> Media {
        Media::of(self.media_type)
    }

    /// Returns the properties that become arguments of their own, and whether each is required: those of an object of few known ones. All
    /// others are one argument.
    pub(crate) fn lifted(&self) -> Option<Vec<(&'a str, Node<'a>, bool)>> {
        if !matches!(self.media(), Media::Json | Media::Form | Media::Multipart) {
            return None;
        }
        let schema = self.schema?.resolve().ok()?;
        let is_other = |word: &str| {
            matches!(
                word,
                "$dynamicRef"
                    | "additionalProperties"
                    | "allOf"
                    | "anyOf"
                    | "dependentSchemas"
                    | "discriminator"
                    | "else"
                    | "if"
                    | "maxProperties"
                    | "minProperties"
                    | "not"
                    | "oneOf"
                    | "patternProperties"
                    | "propertyNames"
                    | "then"
                    | "unevaluatedProperties"
            )
        };
        let is_closed = schema.flag("additionalProperties") == Some(false);
        if schema.members().any(|(word, _)| is_other(word) && !(is_closed && word == "additionalProperties"))
            || schema.flag("nullable") == Some(true)
            || schema.get("type").is_some_and(|kind| kind.value != "object")
        {
            return None;
        }
        let required: Vec<&str> =
            schema.items_of("required").filter_map(|name| name.value.as_str()).take(MAX_LIFTED * 2).collect();
        // What is required in a body that is not is required only with others of it.
        if !self.is_required && !required.is_empty() {
            return None;
        }
        let properties: Vec<_> = schema.members_of("properties").take(MAX_LIFTED + 1).collect();
        if properties.is_empty() || properties.len() > MAX_LIFTED {
            return None;
        }
        Some(properties.into_iter().map(|(name, node)| (name, node, required.contains(&name))).collect())
    }

    /// Returns how it is written, for these arguments.
    pub(crate) fn body(&self, version: Version, shape: BodyShape) -> Body {
        let essence = essence(self.media_type);
        let kind = match self.media() {
            Media::Json => BodyKind::Json,
            Media::Form => BodyKind::Form(self.parts(version)),
            Media::Multipart => BodyKind::Multipart(self.parts(version)),
            Media::Text => BodyKind::Text,
            Media::Image | Media::Audio | Media::Binary => BodyKind::Binary,
        };
        let content_type = match (&kind, essence.contains('*')) {
            (_, false) => self.media_type.trim().to_owned(),
            (BodyKind::Text, true) => "text/plain".to_owned(),
            (BodyKind::Multipart(_), true) => "multipart/form-data".to_owned(),
            (BodyKind::Binary, true) => "application/octet-stream".to_owned(),
            (_, true) => "application/json".to_owned(),
        };
        Body { content_type, kind, shape, is_required: self.is_required }
    }

    /// Returns how a part of a form is written.
    pub(crate) fn part(&self, name: &str, version: Version) -> Option<PartStyle> {
        self.parts(version).remove(name)
    }

    fn parts(&self, version: Version) -> HashMap<String, PartStyle> {
        let schema = self.schema.and_then(|schema| schema.resolve().ok());
        let mut parts: HashMap<String, PartStyle> = HashMap::new();
        for (name, property) in schema.into_iter().flat_map(|schema| schema.members_of("properties")) {
            let part = PartStyle { is_binary: is_binary(property, version), ..PartStyle::default() };
            parts.insert(name.to_owned(), part);
        }
        for (name, encoding) in self.encoding.into_iter().flat_map(Node::members) {
            let part = parts.entry(name.to_owned()).or_default();
            part.content_type = encoding.text("contentType").map(first_type);
            part.allow_reserved = encoding.flag("allowReserved") == Some(true);
            // 3.0 has styles of URL encoding only.
            let has_styles = !version.is_30() || self.media() == Media::Form;
            let style = encoding.read("style");
            if has_styles && (style.is_some() || encoding.get("explode").is_some()) {
                let style = style.unwrap_or(Style::Form);
                part.style = Some((style, encoding.flag("explode").unwrap_or(style == Style::Form)));
            }
        }
        parts
    }
}

/// Returns the first of several media types.
fn first_type(types: &str) -> String {
    types.split(',').next().unwrap_or_default().trim().to_owned()
}

/// Returns whether a property is a file, or a list of them.
fn is_binary(property: Node<'_>, version: Version) -> bool {
    let Ok(schema) = property.resolve() else { return false };
    let schema = match schema.get("items").and_then(|items| items.resolve().ok()) {
        Some(items) if schema.text("type") == Some("array") => items,
        _ => schema,
    };
    let is_other = schema.text("contentMediaType").map(Media::of).is_some_and(|media| {
        matches!(media, Media::Binary | Media::Image | Media::Audio)
            && schema.text("contentEncoding").is_none()
    });
    let is_file = schema.text("type") == Some("file");
    schema.text("format") == Some("binary") || is_file || !version.is_30() && is_other
}
