use pintle::types::JsonObject;
use serde_json::Value;

/// The values that a schema accepts, as far as every model API can express it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) nullable: bool,
    pub(super) kind: ShapeKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShapeKind {
    /// Any value.
    Any,
    Boolean,
    Text {
        format: Option<String>,
        /// `minLength`, `maxLength`, `pattern`.
        keywords: JsonObject,
    },
    Number {
        integer: bool,
        /// `minimum`, `maximum`, the exclusive ones, `multipleOf`.
        keywords: JsonObject,
    },
    List {
        items: Box<Shape>,
        /// `minItems`, `maxItems`, `uniqueItems`.
        keywords: JsonObject,
    },
    Object(ObjectShape),
    /// One of these values, none of which is null.
    Enum(Vec<Value>),
    /// One of these, of which there are at least two.
    Union(Vec<Shape>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectShape {
    pub(super) properties: Vec<Property>,
    pub(super) extra: Extra,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) shape: Shape,
}

/// The properties that a schema does not name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Extra {
    Allowed,
    Forbidden,
    Of(Box<Shape>),
}

impl Shape {
    pub(super) fn of(kind: ShapeKind) -> Self {
        Self { description: None, default: None, nullable: false, kind }
    }

    /// Adds a note to the description.
    pub(super) fn note(&mut self, note: &str) {
        self.description = Some(noted(self.description.as_deref(), note));
    }
}

impl ObjectShape {
    /// An object whose properties are not known.
    pub(super) fn free() -> Self {
        Self { properties: Vec::new(), extra: Extra::Allowed }
    }

    /// Whether nothing is known about the properties but perhaps what their values are.
    pub(super) fn is_free(&self) -> bool {
        self.properties.is_empty() && self.extra != Extra::Forbidden
    }
}

/// A description with a note after it.
pub(super) fn noted(description: Option<&str>, note: &str) -> String {
    match description {
        Some(description) if !description.is_empty() => format!("{description} ({note})"),
        _ => format!("({note})"),
    }
}
