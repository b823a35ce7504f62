use std::{collections::HashSet, rc::Rc};

use pintle::types::JsonObject;
use serde_json::Value;

use super::shape::{Extra, ObjectShape, Property, Shape, ShapeKind};

/// The maximum number of schemas that are read of one tool, with references replaced. Beyond it everything is accepted.
const MAX_NODES: usize = 5000;
/// The maximum size of the texts and values that are copied from the schema of one tool, in bytes: a reference copies them once more.
/// Beyond it everything is accepted.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of properties that one object is put together from.
const MAX_PROPERTIES: usize = 4 * MAX_NODES;
/// The maximum depth.
const MAX_DEPTH: usize = 32;
/// The maximum length of a chain of schemas that one is put together from (`$ref`, `allOf`).
const MAX_PARTS: usize = 64;

/// Reads the schema of a tool's arguments.
pub(super) fn read(schema: &JsonObject) -> ObjectShape {
    let mut reader = SchemaReader { root: schema, nodes: 0, bytes: 0 };
    let mut flat = Flat::default();
    reader.flatten(&mut flat, schema, &Path::default().within("#"), MAX_PARTS);
    // It is that of an object, whatever else it says.
    flat.types = vec!["object"];
    objects_of(reader.shape(&flat, 0))
}

/// The object that has the properties of all.
fn objects_of(shape: Shape) -> ObjectShape {
    match shape.kind {
        ShapeKind::Object(object) => object,
        ShapeKind::Union(shapes) => {
            let mut all = shapes.into_iter().map(objects_of);
            let Some(mut merged) = all.next() else { return ObjectShape::free() };
            for other in all {
                for property in &mut merged.properties {
                    let named = |found: &&Property| found.name == property.name;
                    property.required &=
                        other.properties.iter().find(named).is_some_and(|found| found.required);
                }
                for property in other.properties {
                    if !merged.properties.iter().any(|known| known.name == property.name) {
                        merged.properties.push(Property { required: false, ..property });
                    }
                }
                if merged.extra != other.extra {
                    merged.extra = Extra::Allowed;
                }
            }
            merged
        }
        _ => ObjectShape::free(),
    }
}

struct SchemaReader<'a> {
    root: &'a JsonObject,
    nodes: usize,
    /// The size of what was copied.
    bytes: usize,
}

/// The references that lead to a schema: one of them within it would not end.
#[derive(Clone, Default)]
struct Path<'a>(Option<Rc<(&'a str, Self)>>);

impl<'a> Path<'a> {
    fn within(&self, reference: &'a str) -> Self {
        Self(Some(Rc::new((reference, self.clone()))))
    }

    fn contains(&self, reference: &str) -> bool {
        let mut path = self;
        while let Some(step) = &path.0 {
            if step.0 == reference {
                return true;
            }
            path = &step.1;
        }
        false
    }
}

/// A schema and the references that lead to it.
type Located<'a> = (&'a Value, Path<'a>);

/// A schema with what it refers to, before it is understood.
#[derive(Clone, Default)]
struct Flat<'a> {
    description: Option<&'a str>,
    default: Option<&'a Value>,
    types: Vec<&'a str>,
    nullable: bool,
    values: Option<Vec<&'a Value>>,
    properties: Vec<(&'a str, Vec<Located<'a>>)>,
    required: Vec<&'a str>,
    extra: Option<Located<'a>>,
    items: Option<Located<'a>>,
    prefix: Option<(&'a Vec<Value>, Path<'a>)>,
    branches: Option<(&'a Vec<Value>, Path<'a>)>,
    keywords: Vec<(&'a str, &'a Value)>,
    format: Option<&'a str>,
    /// The name of what it would refer to once more.
    recursive: Option<&'a str>,
    /// The number of properties that were taken over, with repeated ones.
    taken: usize,
}

const TEXT: &[&str] = &["minLength", "maxLength", "pattern"];
const NUMBER: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const LIST: &[&str] = &["minItems", "maxItems", "uniqueItems"];

fn is_keyword(name: &str) -> bool {
    TEXT.contains(&name) || NUMBER.contains(&name) || LIST.contains(&name)
}

impl<'a> SchemaReader<'a> {
    /// Whether nothing more is described.
    fn is_exhausted(&self) -> bool {
        self.nodes > MAX_NODES || self.bytes > MAX_BYTES
    }

    fn read(&mut self, parts: &[Located<'a>], depth: usize) -> Shape {
        let mut flat = Flat::default();
        for (part, path) in parts {
            if let Value::Object(part) = part {
                self.flatten(&mut flat, part, path, MAX_PARTS);
            }
        }
        self.shape(&flat, depth)
    }

    /// Takes over the members of a schema: first of what it refers to, then its own.
    fn flatten(&mut self, flat: &mut Flat<'a>, schema: &'a JsonObject, path: &Path<'a>, parts: usize) {
        self.nodes += 1;
        if parts == 0 || self.is_exhausted() {
            return;
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            if path.contains(reference) {
                flat.recursive = Some(reference.rsplit('/').next().unwrap_or_default());
                if let Some(Value::String(kind)) = self.find(reference).and_then(|target| target.get("type"))
                {
                    flat.types = vec![kind];
                }
            } else if let Some(target) = self.find(reference) {
                self.flatten(flat, target, &path.within(reference), parts - 1);
            }
        }
        let all = schema.get("allOf").and_then(Value::as_array);
        for part in all.into_iter().flatten().filter_map(Value::as_object) {
            self.flatten(flat, part, path, parts - 1);
        }
        for (name, value) in schema {
            flat.take(name, value, path);
        }
    }

    /// Follows a reference within the schema.
    fn find(&self, reference: &str) -> Option<&'a JsonObject> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() {
            return Some(self.root);
        }
        let mut steps = pointer.strip_prefix('/')?.split('/');
        let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
        let mut found = self.root.get(&unescaped(steps.next()?))?;
        for step in steps {
            let step = unescaped(step);
            found = match found {
                Value::Object(members) => members.get(&step)?,
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        found.as_object()
    }

    fn shape(&mut self, flat: &Flat<'a>, depth: usize) -> Shape {
        self.nodes += 1;
        if !self.is_exhausted() {
            self.bytes = self.bytes.saturating_add(flat.size());
        }
        let cut = self.is_exhausted() || depth > MAX_DEPTH;
        let mut shape = Shape::of(ShapeKind::Any);
        if self.is_exhausted() {
            return not_described(shape);
        }
        shape.description = flat.description.map(str::to_owned);
        shape.default = flat.default.cloned();
        shape.nullable = flat.nullable;
        if cut || flat.recursive.is_some() {
            shape.kind = match flat.types.first() {
                Some(&"object") => ShapeKind::Object(ObjectShape::free()),
                _ => ShapeKind::Any,
            };
            shape.default = None;
            match flat.recursive {
                Some(name) if !name.is_empty() => shape.note(&format!("again a `{name}`")),
                _ => shape.note("not described further"),
            }
            return shape;
        }
        if let Some(values) = &flat.values {
            let known = values.iter().filter(|value| !value.is_null()).map(|value| (*value).clone());
            let known: Vec<Value> = known.collect();
            shape.nullable |= known.len() < values.len();
            if !known.is_empty() {
                shape.kind = ShapeKind::Enum(known);
            }
            return shape;
        }
        if let Some((branches, path)) = &flat.branches
            && branches.iter().any(is_structural)
        {
            return self.union(shape, flat, branches, path, depth);
        }
        match flat.types[..] {
            [] => shape.kind = self.kind(flat, flat.inferred(), depth),
            [kind] => shape.kind = self.kind(flat, kind, depth),
            _ => {
                let kinds = flat.types.iter().map(|kind| Shape::of(self.kind(flat, kind, depth)));
                shape.kind = ShapeKind::Union(kinds.collect());
            }
        }
        shape
    }

    /// One of several schemas, each together with what is beside them.
    fn union(
        &mut self,
        mut shape: Shape,
        flat: &Flat<'a>,
        branches: &'a [Value],
        path: &Path<'a>,
        depth: usize,
    ) -> Shape {
        let mut shapes: Vec<Shape> = Vec::new();
        for branch in branches.iter().filter_map(Value::as_object) {
            if self.is_exhausted() {
                // Some of the branches alone would forbid the others.
                return not_described(shape);
            }
            if branch.get("type").and_then(Value::as_str) == Some("null") {
                shape.nullable = true;
                continue;
            }
            let mut with = Flat { description: None, default: None, branches: None, ..flat.clone() };
            if !with.types.is_empty() && branch.contains_key("type") {
                with.types.clear();
            }
            self.flatten(&mut with, branch, path, MAX_PARTS);
            let read = self.shape(&with, depth + 1);
            shape.nullable |= read.nullable;
            let read = Shape { nullable: false, ..read };
            if !shapes.contains(&read) {
                shapes.push(read);
            }
        }
        if let Some(values) = enum_of(&shapes) {
            // Values that are described one by one.
            for (value, described) in values.iter().zip(&shapes) {
                if let (Some(description), true) = (&described.description, values.len() == shapes.len()) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let line = format!("`{text}`: {description}");
                    shape.description = Some(match shape.description.take() {
                        Some(before) => format!("{before}\n{line}"),
                        None => line,
                    });
                }
            }
            shape.kind = ShapeKind::Enum(values);
            return shape;
        }
        shape.kind = match shapes.len() {
            0 => ShapeKind::Any,
            1 => {
                let only = shapes.remove(0);
                shape.description = shape.description.or(only.description);
                only.kind
            }
            _ => ShapeKind::Union(shapes),
        };
        shape
    }

    fn kind(&mut self, flat: &Flat<'a>, kind: &str, depth: usize) -> ShapeKind {
        match kind {
            "boolean" => ShapeKind::Boolean,
            "string" => {
                ShapeKind::Text { format: flat.format.map(str::to_owned), keywords: flat.keywords(TEXT) }
            }
            "integer" | "number" => {
                ShapeKind::Number { integer: kind == "integer", keywords: flat.keywords(NUMBER) }
            }
            "array" => self.list(flat, depth),
            "object" => self.object(flat, depth),
            _ => ShapeKind::Any,
        }
    }

    fn list(&mut self, flat: &Flat<'a>, depth: usize) -> ShapeKind {
        let mut keywords = flat.keywords(LIST);
        let items = match &flat.prefix {
            // A tuple is a list of what its items are.
            Some((prefix, path)) => {
                let mut shapes: Vec<Shape> = Vec::new();
                for item in prefix.iter() {
                    let read = self.read(&[(item, path.clone())], depth + 1);
                    if !shapes.contains(&read) {
                        shapes.push(read);
                    }
                }
                keywords.entry("minItems").or_insert(prefix.len().into());
                keywords.entry("maxItems").or_insert(prefix.len().into());
                match shapes.len() {
                    0 => Shape::of(ShapeKind::Any),
                    1 => shapes.remove(0),
                    _ => Shape::of(ShapeKind::Union(shapes)),
                }
            }
            None => match &flat.items {
                Some(items) => self.read(std::slice::from_ref(items), depth + 1),
                None => Shape::of(ShapeKind::Any),
            },
        };
        ShapeKind::List { items: Box::new(items), keywords }
    }

    fn object(&mut self, flat: &Flat<'a>, depth: usize) -> ShapeKind {
        let mut properties = Vec::with_capacity(flat.properties.len().min(MAX_NODES));
        let required: HashSet<&str> = flat.required.iter().copied().collect();
        for (name, parts) in &flat.properties {
            if self.is_exhausted() {
                break;
            }
            self.bytes = self.bytes.saturating_add(name.len());
            let shape = self.read(parts, depth + 1);
            properties.push(Property { name: (*name).to_owned(), required: required.contains(name), shape });
        }
        let extra = match &flat.extra {
            // The rest of the properties would be forbidden too.
            _ if properties.len() < flat.properties.len() => Extra::Allowed,
            Some((Value::Bool(false), _)) => Extra::Forbidden,
            Some(schema @ (Value::Object(members), _)) if !members.is_empty() => {
                Extra::Of(Box::new(self.read(std::slice::from_ref(schema), depth + 1)))
            }
            _ => Extra::Allowed,
        };
        ShapeKind::Object(ObjectShape { properties, extra })
    }
}

impl<'a> Flat<'a> {
    /// Takes over a member. Of constraints the first is kept, of texts the last, which is nearest to the use.
    fn take(&mut self, name: &'a str, value: &'a Value, path: &Path<'a>) {
        match (name, value) {
            ("description", Value::String(text)) => self.description = Some(text),
            ("default", value) => self.default = Some(value),
            ("type", Value::String(kind)) if self.types.is_empty() => self.take_types(&[kind.as_str()]),
            ("type", Value::Array(kinds)) if self.types.is_empty() => {
                self.take_types(&kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>());
            }
            ("nullable", Value::Bool(nullable)) => self.nullable |= nullable,
            ("enum", Value::Array(values)) if self.values.is_none() => {
                self.values = Some(values.iter().collect())
            }
            ("const", value) => self.values = Some(vec![value]),
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    self.taken += 1;
                    if self.properties.len() > MAX_NODES || self.taken > MAX_PROPERTIES {
                        break;
                    }
                    match self.properties.iter_mut().find(|(known, _)| known == name) {
                        Some((_, parts)) if parts.len() < MAX_PARTS => parts.push((schema, path.clone())),
                        Some(_) => {}
                        None => self.properties.push((name, vec![(schema, path.clone())])),
                    }
                }
            }
            ("required", Value::Array(names)) => self.required.extend(names.iter().filter_map(Value::as_str)),
            ("additionalProperties", value) if self.extra.is_none() => {
                self.extra = Some((value, path.clone()));
            }
            ("prefixItems", Value::Array(items)) | ("items", Value::Array(items)) => {
                self.prefix = Some((items, path.clone()))
            }
            ("items", value) if self.items.is_none() => self.items = Some((value, path.clone())),
            ("anyOf" | "oneOf", Value::Array(branches)) if self.branches.is_none() => {
                self.branches = Some((branches, path.clone()))
            }
            ("format", Value::String(format)) => self.format = Some(format),
            _ if is_keyword(name) && !self.keywords.iter().any(|(known, _)| *known == name) => {
                self.keywords.push((name, value));
            }
            _ => {}
        }
    }

    fn take_types(&mut self, kinds: &[&'a str]) {
        self.nullable |= kinds.contains(&"null");
        self.types = kinds.iter().copied().filter(|kind| *kind != "null").collect();
        if self.types.contains(&"number") {
            self.types.retain(|kind| *kind != "integer");
        }
    }

    fn keywords(&self, names: &[&str]) -> JsonObject {
        let known = self.keywords.iter().filter(|(name, _)| names.contains(name));
        known.map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect()
    }

    /// The size of what a shape copies, in bytes.
    fn size(&self) -> usize {
        let texts = self.description.map_or(0, str::len) + self.format.map_or(0, str::len);
        let values = self.values.iter().flatten().copied().chain(self.default);
        let values = values.chain(self.keywords.iter().map(|(_, value)| *value));
        texts + values.map(size_of_value).sum::<usize>()
    }

    /// The type of a schema that does not state one.
    fn inferred(&self) -> &'static str {
        let has = |names: &[&str]| self.keywords.iter().any(|(name, _)| names.contains(name));
        if !self.properties.is_empty() || !self.required.is_empty() || self.extra.is_some() {
            "object"
        } else if self.items.is_some() || self.prefix.is_some() || has(LIST) {
            "array"
        } else if self.format.is_some() || has(TEXT) {
            "string"
        } else if has(NUMBER) {
            "number"
        } else {
            "any"
        }
    }
}

/// A shape that accepts everything, because the limit is reached.
fn not_described(shape: Shape) -> Shape {
    let mut shape = Shape { kind: ShapeKind::Any, default: None, ..shape };
    shape.note("not described further");
    shape
}

/// The size of a value, in bytes.
fn size_of_value(value: &Value) -> usize {
    const OVERHEAD: usize = 16;
    OVERHEAD
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size_of_value).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
            }
            _ => 0,
        }
}

/// Whether a branch says what a value is, and not only which properties it needs.
fn is_structural(branch: &Value) -> bool {
    let names = ["type", "properties", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "items"];
    branch.as_object().is_some_and(|branch| names.iter().any(|name| branch.contains_key(*name)))
}

/// The values of branches that are nothing but values.
fn enum_of(shapes: &[Shape]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for shape in shapes {
        let ShapeKind::Enum(of_shape) = &shape.kind else { return None };
        values.extend(of_shape.iter().cloned());
    }
    (!values.is_empty()).then_some(values)
}
