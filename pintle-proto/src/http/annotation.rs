use std::{collections::HashSet, fmt};

use http::HeaderName;
use pintle_types::RawValue;
use serde_json::{Map, Value};

use super::names::MCP_PARAM_PREFIX;

/// The arguments of one tool that are mirrored in `Mcp-Param-*` headers, compiled from its input schema.
///
/// ```
/// use pintle_proto::http::HeaderParams;
/// use serde_json::json;
///
/// let params = HeaderParams::from_schema(&json!({
///     "type": "object",
///     "properties": { "region": { "type": "string", "x-mcp-header": "Region" }, "query": { "type": "string" } },
/// }))?;
/// assert_eq!(params.iter().map(|param| param.header.as_str()).collect::<Vec<_>>(), ["mcp-param-region"]);
///
/// let bad = json!({ "properties": { "ratio": { "type": "number", "x-mcp-header": "Ratio" } } });
/// assert_eq!(
///     HeaderParams::from_schema(&bad).unwrap_err().to_string(),
///     "`x-mcp-header` at `/properties/ratio`: the type must be exactly `string`, `integer` or `boolean`",
/// );
/// # Ok::<(), pintle_proto::http::BadAnnotation>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeaderParams {
    /// Sorted by path, so that one pass over the arguments finds them all.
    pub(super) params: Vec<HeaderParam>,
}

/// An argument that is mirrored in a header.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeaderParam {
    /// The header's whole name.
    pub header: HeaderName,
    /// The part after `Mcp-Param-`, as the schema spells it.
    pub label: String,
    /// The property names that lead from the arguments to the value.
    pub path: Vec<String>,
    /// The type of the value.
    pub kind: ParamKind,
}

/// The type of an argument that can be mirrored in a header.
#[expect(clippy::exhaustive_enums, reason = "the specification names these three and forbids the others")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ParamKind {
    /// Sent as it is, or encoded.
    String,
    /// Sent in decimal digits.
    Integer,
    /// Sent as `true` or `false`.
    Boolean,
}

impl HeaderParams {
    /// Finds and checks every `x-mcp-header` of an input schema.
    ///
    /// The whole schema is searched: an annotation on something that cannot be mirrored, such as in `items` or `$defs`,
    /// makes the tool invalid, and a client must then ignore that tool.
    pub fn from_schema(schema: &Value) -> Result<Self, BadAnnotation> {
        match schema {
            Value::Object(schema) => Self::from_object_schema(schema),
            // `true` and values that are not schemas have no annotations.
            _ => Ok(Self::default()),
        }
    }

    /// Finds and checks every `x-mcp-header` of an input schema that is given as a JSON object.
    pub fn from_object_schema(schema: &Map<String, Value>) -> Result<Self, BadAnnotation> {
        let mut walk =
            Walk { locations: Vec::new(), todo: Vec::new(), labels: HashSet::new(), params: Vec::new() };
        walk.object(At { location: None, depth: 0, role: Role::Root }, schema)?;
        while let Some(Visit { at, value }) = walk.todo.pop() {
            walk.step(at, value)?;
        }
        walk.params.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(Self { params: walk.params })
    }

    /// Finds and checks every `x-mcp-header` of an input schema that is given as text. A text without annotations is
    /// not parsed.
    pub fn from_raw_schema(schema: &RawValue) -> Result<Self, BadAnnotation> {
        let text = schema.get();
        // The keyword may be written with an escape.
        if !text.contains(KEYWORD) && !text.contains("\\u") {
            return Ok(Self::default());
        }
        match serde_json::from_str(text) {
            Ok(schema) => Self::from_schema(&schema),
            // A raw value is valid JSON, so this is nesting beyond the parser's limit.
            Err(_) => Err(BadAnnotation { location: String::new(), fault: AnnotationFault::TooDeep }),
        }
    }

    /// Returns whether no argument is mirrored.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Returns the mirrored arguments.
    pub fn iter(&self) -> impl Iterator<Item = &HeaderParam> {
        self.params.iter()
    }
}

/// The error for an input schema with an invalid `x-mcp-header` annotation.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadAnnotation {
    /// The location in the schema, as a JSON pointer.
    pub location: String,
    /// The fault.
    pub fault: AnnotationFault,
}

/// A fault of an `x-mcp-header` annotation.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AnnotationFault {
    /// The annotation is not a string.
    NotAString,
    /// The annotation is empty.
    Empty,
    /// The annotation has a character that is not allowed in a header name.
    NotAToken(String),
    /// Another property has the same annotation, ignoring case.
    Duplicate(String),
    /// The property's type is not `string`, `integer` or `boolean`.
    WrongType,
    /// The annotation is not on a property, or the property is not reachable through `properties` alone.
    Unreachable,
    /// The schema is nested deeper than the search goes.
    TooDeep,
}

impl fmt::Display for BadAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{KEYWORD}` at `{}`: ", self.location)?;
        match &self.fault {
            AnnotationFault::NotAString => f.write_str("must be a string"),
            AnnotationFault::Empty => f.write_str("must not be empty"),
            AnnotationFault::NotAToken(label) => write!(f, "{label:?} cannot be part of a header name"),
            AnnotationFault::Duplicate(label) => write!(f, "`{label}` is taken by another property"),
            AnnotationFault::WrongType => {
                f.write_str("the type must be exactly `string`, `integer` or `boolean`")
            }
            AnnotationFault::Unreachable => {
                f.write_str("must be on a property that is reachable through `properties` alone")
            }
            AnnotationFault::TooDeep => f.write_str("the schema is nested too deeply to be searched"),
        }
    }
}

impl std::error::Error for BadAnnotation {}

const KEYWORD: &str = "x-mcp-header";

/// The depth limit of serde_json.
const MAX_DEPTH: usize = 128;

struct Walk<'s> {
    /// The locations seen, each linked to its parent: a path is only built when it is needed.
    locations: Vec<Location<'s>>,
    todo: Vec<Visit<'s>>,
    labels: HashSet<String>,
    params: Vec<HeaderParam>,
}

#[derive(Clone, Copy)]
struct Location<'s> {
    parent: Option<usize>,
    step: PathStep<'s>,
}

#[derive(Clone, Copy)]
enum PathStep<'s> {
    Key(&'s str),
    Index(usize),
}

struct Visit<'s> {
    at: At,
    value: &'s Value,
}

#[derive(Clone, Copy)]
struct At {
    location: Option<usize>,
    depth: usize,
    role: Role,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// The schema of all arguments.
    Root,
    /// The schema of an argument, or of a part of one.
    Property,
    /// An object whose keys are the names of arguments.
    Properties,
    /// An object whose keys are names of something else.
    Names,
    /// A schema that is not reachable by property names, or any other value that may contain one.
    Elsewhere,
}

impl<'s> Walk<'s> {
    fn step(&mut self, at: At, value: &'s Value) -> Result<(), BadAnnotation> {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.push(at, PathStep::Index(index), item, Role::Elsewhere)?;
                }
                Ok(())
            }
            Value::Object(members) => self.object(at, members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn object(&mut self, at: At, members: &'s Map<String, Value>) -> Result<(), BadAnnotation> {
        if let Role::Properties | Role::Names = at.role {
            let role = if at.role == Role::Properties { Role::Property } else { Role::Elsewhere };
            for (name, schema) in members {
                self.push(at, PathStep::Key(name), schema, role)?;
            }
            return Ok(());
        }
        if let Some(label) = members.get(KEYWORD) {
            self.annotate(at, members, label)
                .map_err(|fault| BadAnnotation { location: self.pointer(at.location), fault })?;
        }
        for (keyword, value) in members {
            let role = match keyword.as_str() {
                "properties" if matches!(at.role, Role::Root | Role::Property) => Role::Properties,
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                    Role::Names
                }
                // Values, not schemas.
                "const" | "default" | "enum" | "examples" | KEYWORD => continue,
                _ => Role::Elsewhere,
            };
            self.push(at, PathStep::Key(keyword), value, role)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        at: At,
        step: PathStep<'s>,
        value: &'s Value,
        role: Role,
    ) -> Result<(), BadAnnotation> {
        if !value.is_object() && !value.is_array() {
            return Ok(());
        }
        if at.depth == MAX_DEPTH {
            return Err(BadAnnotation {
                location: self.pointer(at.location),
                fault: AnnotationFault::TooDeep,
            });
        }
        self.locations.push(Location { parent: at.location, step });
        let at = At { location: Some(self.locations.len() - 1), depth: at.depth + 1, role };
        self.todo.push(Visit { at, value });
        Ok(())
    }

    fn annotate(
        &mut self,
        at: At,
        schema: &Map<String, Value>,
        label: &Value,
    ) -> Result<(), AnnotationFault> {
        if at.role != Role::Property {
            return Err(AnnotationFault::Unreachable);
        }
        let label = label.as_str().ok_or(AnnotationFault::NotAString)?;
        if label.is_empty() {
            return Err(AnnotationFault::Empty);
        }
        let header = HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{label}").as_bytes())
            .map_err(|_| AnnotationFault::NotAToken(label.to_owned()))?;
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("string") => ParamKind::String,
            Some("integer") => ParamKind::Integer,
            Some("boolean") => ParamKind::Boolean,
            _ => return Err(AnnotationFault::WrongType),
        };
        if !self.labels.insert(label.to_ascii_lowercase()) {
            return Err(AnnotationFault::Duplicate(label.to_owned()));
        }
        let path = self.names(at.location);
        self.params.push(HeaderParam { header, label: label.to_owned(), path, kind });
        Ok(())
    }

    /// Returns the argument names on the path to a property: every other step is `properties`.
    fn names(&self, location: Option<usize>) -> Vec<String> {
        let steps = self.steps(location);
        steps.iter().skip(1).step_by(2).map(ToString::to_string).collect()
    }

    fn pointer(&self, location: Option<usize>) -> String {
        self.steps(location)
            .iter()
            .map(|step| format!("/{}", step.to_string().replace('~', "~0").replace('/', "~1")))
            .collect()
    }

    fn steps(&self, mut location: Option<usize>) -> Vec<PathStep<'s>> {
        let mut steps = Vec::new();
        while let Some(Location { parent, step }) = location.map(|index| self.locations[index]) {
            steps.push(step);
            location = parent;
        }
        steps.reverse();
        steps
    }
}

impl fmt::Display for PathStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => index.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> Result<Vec<String>, String> {
        let raw = serde_json::value::to_raw_value(schema).unwrap();
        let describe = |params: HeaderParams| {
            let describe =
                |param: &HeaderParam| format!("{} {} {:?}", param.header, param.path.join("."), param.kind);
            params.iter().map(describe).collect()
        };
        let parsed = HeaderParams::from_schema(schema).map(describe).map_err(|bad| bad.to_string());
        assert_eq!(parsed, HeaderParams::from_raw_schema(&raw).map(describe).map_err(|bad| bad.to_string()));
        parsed
    }

    #[test]
    fn valid_schemas() {
        for (schema, expected) in [
            (json!({}), vec![]),
            (json!(true), vec![]),
            (json!({"type":"object","properties":{"a":{"type":"number"}}}), vec![]),
            (
                json!({"properties":{
                    "region":{"type":"string","x-mcp-header":"Region"},
                    "priority":{"type":"integer","x-mcp-header":"Priority"},
                    "dry":{"type":"boolean","x-mcp-header":"Dry-Run!"},
                    "query":{"type":"string"}}}),
                vec![
                    "mcp-param-dry-run! dry Boolean",
                    "mcp-param-priority priority Integer",
                    "mcp-param-region region String",
                ],
            ),
            // Nested, and a sibling `$ref` does no harm.
            (
                json!({"properties":{"db":{"type":"object","properties":{
                    "shard":{"$ref":"#/$defs/x","type":"integer","x-mcp-header":"Shard"}}}},"$defs":{"x":{"minimum":0}}}),
                vec!["mcp-param-shard db.shard Integer"],
            ),
            // A definition of that name.
            (json!({"$defs":{"x-mcp-header":{"type":"string"}}}), vec![]),
            // A property of that name, and values that only look like annotations.
            (
                json!({"properties":{"x-mcp-header":{"type":"string"},"properties":{"type":"object","properties":{
                    "x-mcp-header":{"type":"string","x-mcp-header":"Deep"}}}}}),
                vec!["mcp-param-deep properties.x-mcp-header String"],
            ),
            (
                json!({"default":{"x-mcp-header":"A"},"properties":{"a":{
                    "const":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"A"}],"examples":[{"x-mcp-header":"A"}]}}}),
                vec![],
            ),
        ] {
            assert_eq!(found(&schema), Ok(expected.into_iter().map(str::to_owned).collect()));
        }
    }

    #[test]
    fn invalid_labels_and_types() {
        for (schema, expected) in [
            (json!({"type":"string","x-mcp-header":""}), "must not be empty"),
            (json!({"type":"string","x-mcp-header":7}), "must be a string"),
            (
                json!({"type":"string","x-mcp-header":"My Region"}),
                "\"My Region\" cannot be part of a header name",
            ),
            (json!({"type":"string","x-mcp-header":"a:b"}), "\"a:b\" cannot be part of a header name"),
            (json!({"type":"string","x-mcp-header":"é"}), "\"é\" cannot be part of a header name"),
            (
                json!({"type":"string","x-mcp-header":"a\r\nb"}),
                "\"a\\r\\nb\" cannot be part of a header name",
            ),
            (json!({"type":"string","x-mcp-header":"\u{7f}"}), "\"\\u{7f}\" cannot be part of a header name"),
            (
                json!({"type":"number","x-mcp-header":"A"}),
                "the type must be exactly `string`, `integer` or `boolean`",
            ),
            (
                json!({"type":"object","x-mcp-header":"A"}),
                "the type must be exactly `string`, `integer` or `boolean`",
            ),
            (
                json!({"type":"array","x-mcp-header":"A"}),
                "the type must be exactly `string`, `integer` or `boolean`",
            ),
            (
                json!({"type":"null","x-mcp-header":"A"}),
                "the type must be exactly `string`, `integer` or `boolean`",
            ),
            (
                json!({"type":["string","null"],"x-mcp-header":"A"}),
                "the type must be exactly `string`, `integer` or `boolean`",
            ),
            (json!({"x-mcp-header":"A"}), "the type must be exactly `string`, `integer` or `boolean`"),
        ] {
            let schema = json!({"type":"object","properties":{"a/b":schema}});
            assert_eq!(found(&schema), Err(format!("`x-mcp-header` at `/properties/a~1b`: {expected}")));
        }
    }

    #[test]
    fn labels_are_unique_apart_from_case() {
        for (one, other) in [("Region", "Region"), ("Region", "REGION")] {
            let schema = json!({"properties":{
                "a":{"type":"string","x-mcp-header":one},
                "b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":other}}}}});
            assert!(found(&schema).unwrap_err().ends_with("is taken by another property"));
        }
    }

    #[test]
    fn an_annotation_out_of_reach_spoils_the_schema() {
        let annotated = json!({"type":"string","x-mcp-header":"A"});
        let inside = json!({"properties":{"a":annotated}});
        for (schema, location) in [
            (annotated.clone(), ""),
            (json!({"properties":{"a":{"items":annotated}}}), "/properties/a/items"),
            (json!({"properties":{"a":{"items":inside}}}), "/properties/a/items/properties/a"),
            (json!({"properties":{"a":{"prefixItems":[true,annotated]}}}), "/properties/a/prefixItems/1"),
            (json!({"allOf":[inside]}), "/allOf/0/properties/a"),
            (json!({"anyOf":[{},inside]}), "/anyOf/1/properties/a"),
            (json!({"oneOf":[inside]}), "/oneOf/0/properties/a"),
            (json!({"not":inside}), "/not/properties/a"),
            (json!({"if":inside}), "/if/properties/a"),
            (json!({"then":inside}), "/then/properties/a"),
            (json!({"else":inside}), "/else/properties/a"),
            (json!({"$defs":{"d":annotated}}), "/$defs/d"),
            (json!({"$defs":{"const":annotated}}), "/$defs/const"),
            (json!({"definitions":{"d":inside}}), "/definitions/d/properties/a"),
            (json!({"patternProperties":{"^a":annotated}}), "/patternProperties/^a"),
            (json!({"additionalProperties":annotated}), "/additionalProperties"),
            (json!({"dependentSchemas":{"d":inside}}), "/dependentSchemas/d/properties/a"),
            (json!({"unevaluatedProperties":annotated}), "/unevaluatedProperties"),
            (json!({"propertyNames":annotated}), "/propertyNames"),
            (json!({"contains":annotated}), "/contains"),
            (json!({"x-shared":{"any":[annotated]}}), "/x-shared/any/0"),
        ] {
            let expected = format!(
                "`x-mcp-header` at `{location}`: must be on a property that is reachable through `properties` alone"
            );
            assert_eq!(found(&schema), Err(expected));
        }
    }

    #[test]
    fn a_deep_schema_is_refused_and_a_hidden_keyword_is_found() {
        let mut schema = json!({});
        for _ in 0..200 {
            schema = json!({"not":schema});
        }
        assert_eq!(HeaderParams::from_schema(&schema).unwrap_err().fault, AnnotationFault::TooDeep);
        let raw: Box<RawValue> =
            serde_json::from_str(r#"{"properties":{"a":{"type":"string","x-mcp-\u0068eader":"A"}}}"#)
                .unwrap();
        let params = HeaderParams::from_raw_schema(&raw).unwrap();
        assert_eq!(params.iter().count(), 1);
        assert!(!params.is_empty() && HeaderParams::default().is_empty());
    }
}
