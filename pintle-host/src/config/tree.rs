use std::{path::PathBuf, sync::Arc};

use super::{ConfigError, ConfigErrorKind, Source};

/// A value of a configuration file with its line, whichever format it was written in.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: NodeValue,
}

#[derive(Clone)]
pub(super) enum NodeValue {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<TableMember>),
}

#[derive(Clone)]
pub(super) struct TableMember {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) node: Node,
}

impl Node {
    pub(super) fn table(&self) -> Option<&[TableMember]> {
        match &self.value {
            NodeValue::Table(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.table()?.iter().find(|member| member.name == name).map(|member| &member.node)
    }

    /// The type, for error messages. The value may be a secret.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "null",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::Text(_) => "a string",
            NodeValue::List(_) => "a list",
            NodeValue::Table(_) => "an object",
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            NodeValue::Null => serde_json::Value::Null,
            NodeValue::Bool(value) => (*value).into(),
            NodeValue::Number(value) => value.clone().into(),
            NodeValue::Text(value) => value.clone().into(),
            NodeValue::List(values) => values.iter().map(Self::to_json).collect(),
            NodeValue::Table(members) => {
                members.iter().map(|member| (member.name.clone(), member.node.to_json())).collect()
            }
        }
    }
}

/// Converts byte offsets to lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

/// Parses JSON with comments and trailing commas. An empty file is an empty object.
pub(super) fn parse_json(file: &Arc<PathBuf>, text: &str) -> Result<Node, ConfigError> {
    let options = jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let lines = Lines::of(text);
    let parsed = jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &options);
    let parsed = parsed.map_err(|error| {
        let source = Source { file: file.clone(), line: error.line_display() };
        let reason = format!("invalid JSON at column {}: {}", error.column_display(), lower(error.kind()));
        ConfigError::at(&source, ConfigErrorKind::Syntax, reason)
    })?;
    match parsed.value {
        Some(value) => json_node(file, &lines, value),
        None => Ok(Node { line: 1, value: NodeValue::Table(Vec::new()) }),
    }
}

fn lower(reason: impl std::fmt::Display) -> String {
    let mut reason = reason.to_string();
    if let Some(first) = reason.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    reason
}

fn json_node(
    file: &Arc<PathBuf>,
    lines: &Lines,
    value: jsonc_parser::ast::Value<'_>,
) -> Result<Node, ConfigError> {
    use jsonc_parser::{ast::Value, common::Ranged as _};
    let line = lines.line(value.range().start);
    let value = match value {
        Value::NullKeyword(_) => NodeValue::Null,
        Value::BooleanLit(value) => NodeValue::Bool(value.value),
        Value::NumberLit(number) => {
            let parsed = number.value.parse();
            NodeValue::Number(parsed.map_err(|_| {
                let source = Source { file: file.clone(), line };
                ConfigError::at(&source, ConfigErrorKind::Syntax, "a number is out of range")
            })?)
        }
        Value::StringLit(text) => NodeValue::Text(text.value.into_owned()),
        Value::Array(list) => NodeValue::List(
            list.elements.into_iter().map(|value| json_node(file, lines, value)).collect::<Result<_, _>>()?,
        ),
        Value::Object(object) => {
            let mut members = Vec::with_capacity(object.properties.len());
            for property in object.properties {
                let line = lines.line(property.range.start);
                let node = json_node(file, lines, property.value)?;
                members.push(TableMember { name: property.name.into_string(), line, node });
            }
            NodeValue::Table(members)
        }
    };
    Ok(Node { line, value })
}

/// Parses TOML.
#[cfg(feature = "toml")]
pub(super) fn parse_toml(file: &Arc<PathBuf>, text: &str) -> Result<Node, ConfigError> {
    let lines = Lines::of(text);
    let document = toml_edit::Document::parse(text).map_err(|error| {
        // The error's own text quotes the line, which may hold a secret.
        let line = error.span().map_or(1, |span| lines.line(span.start));
        let reason = format!("invalid TOML: {}", error.message());
        ConfigError::at(&Source { file: file.clone(), line }, ConfigErrorKind::Syntax, reason)
    })?;
    Ok(toml_table(&lines, document.as_table(), 1))
}

#[cfg(feature = "toml")]
fn toml_table(lines: &Lines, table: &dyn toml_edit::TableLike, line: usize) -> Node {
    let members = table.iter().map(|(name, item)| {
        let span = table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
        let line = span.map_or(line, |span| lines.line(span.start));
        TableMember { name: name.to_owned(), line, node: toml_item(lines, item, line) }
    });
    Node { line, value: NodeValue::Table(members.collect()) }
}

#[cfg(feature = "toml")]
fn toml_item(lines: &Lines, item: &toml_edit::Item, line: usize) -> Node {
    let line = item.span().map_or(line, |span| lines.line(span.start));
    if let Some(table) = item.as_table_like() {
        return toml_table(lines, table, line);
    }
    let value = match item {
        toml_edit::Item::Value(value) => toml_value(lines, value, line),
        toml_edit::Item::ArrayOfTables(tables) => {
            NodeValue::List(tables.iter().map(|table| toml_table(lines, table, line)).collect())
        }
        _ => NodeValue::Null,
    };
    Node { line, value }
}

#[cfg(feature = "toml")]
fn toml_value(lines: &Lines, value: &toml_edit::Value, line: usize) -> NodeValue {
    use toml_edit::Value;
    match value {
        Value::String(text) => NodeValue::Text(text.value().clone()),
        Value::Integer(number) => NodeValue::Number((*number.value()).into()),
        Value::Float(number) => {
            serde_json::Number::from_f64(*number.value()).map_or(NodeValue::Null, NodeValue::Number)
        }
        Value::Boolean(value) => NodeValue::Bool(*value.value()),
        Value::Datetime(date) => NodeValue::Text(date.value().to_string()),
        Value::Array(list) => {
            let nodes = list.iter().map(|value| {
                let line = value.span().map_or(line, |span| lines.line(span.start));
                Node { line, value: toml_value(lines, value, line) }
            });
            NodeValue::List(nodes.collect())
        }
        Value::InlineTable(table) => toml_table(lines, table, line).value,
    }
}
