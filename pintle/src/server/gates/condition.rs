use std::cmp::Ordering;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::server::{ArgumentType, Reading, mounts::transform::pattern};

/// The limit of names in a path.
const MAX_NAMES: usize = 16;

/// A condition of a rule on an argument.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(untagged)]
pub enum Condition {
    /// Tests of the value, all of which it has to pass.
    Tests(ConditionTests),
    /// A pattern of a text, in which `*` is any text, or a value that is equal.
    Value(#[schemars(schema_with = "value_schema")] Value),
}

/// The tests of a [`Condition`].
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ConditionTests {
    /// A pattern that it does not match, or a value that it does not equal. If it is not there, it passes unless the rule allows.
    #[schemars(schema_with = "value_schema")]
    pub not: Option<Value>,
    /// Patterns and values, one of which it matches or equals.
    pub one_of: Option<Vec<Value>>,
    /// The smallest number that passes.
    pub min: Option<Number>,
    /// The largest number that passes.
    pub max: Option<Number>,
    /// Whether it is not there at all. It is the only test then.
    pub absent: Option<bool>,
}

fn value_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["boolean", "number", "string", "array", "null"]})
}

impl Condition {
    /// Returns the types of values that it can be compared with.
    pub(super) fn types(&self) -> Vec<ArgumentType> {
        use ArgumentType::{Array, Boolean, Number, Object, String};
        let tests = match self {
            Self::Value(value) => return vec![ArgumentType::of(value)],
            Self::Tests(tests) => tests,
        };
        let values = tests.not.iter().chain(tests.one_of.iter().flatten()).map(ArgumentType::of);
        let bounds = tests.min.iter().chain(&tests.max).map(|_| Number);
        // `null` is neither a value nor an argument that is not there.
        let all = tests.absent.iter().flat_map(|_| [Boolean, Number, String, Array, Object]);
        let mut types = Vec::new();
        for known in values.chain(bounds).chain(all) {
            if !types.contains(&known) {
                types.push(known);
            }
        }
        types
    }

    /// Returns whether the values of an argument meet it: all of them, or one. So are two readings of a text that may be a path.
    pub(super) fn is_met(&self, reading: &Reading<'_>, all: bool) -> bool {
        let meets = |value: Option<&Value>| self.meets(value, all);
        if all { reading.all(meets) } else { reading.any(meets) }
    }

    fn meets(&self, value: Option<&Value>, all: bool) -> bool {
        let is_equal = |wanted: &Value, all: bool| value.is_some_and(|value| is_equal(wanted, value, all));
        let tests = match self {
            Self::Value(wanted) => return is_equal(wanted, all),
            Self::Tests(tests) => tests,
        };
        let number = value.and_then(Value::as_number);
        let is_bounded = |bound: &Option<Number>, outside: Ordering| {
            let is_inside = |bound: &Number| number.is_some_and(|number| compare(number, bound) != outside);
            bound.as_ref().is_none_or(is_inside)
        };
        let is_not = |wanted: &Value| match value {
            None => !all,
            Some(_) => !is_equal(wanted, !all),
        };
        tests.absent.is_none_or(|absent| absent == value.is_none())
            && tests.not.as_ref().is_none_or(is_not)
            && tests.one_of.as_ref().is_none_or(|known| known.iter().any(|wanted| is_equal(wanted, all)))
            && is_bounded(&tests.min, Ordering::Less)
            && is_bounded(&tests.max, Ordering::Greater)
    }

    /// Returns what is wrong with it, as the condition on this path.
    pub(super) fn fault(&self, path: &str) -> Option<String> {
        if path.split('.').any(str::is_empty) {
            return Some(format!("`{path}` is not a path: write names with a dot between them"));
        }
        if path.split('.').count() > MAX_NAMES {
            return Some(format!("a path has at most {MAX_NAMES} names: use a shorter one than `{path}`"));
        }
        let is_simple = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
        let tests = match self {
            Self::Value(Value::Object(members)) => {
                let member = members.keys().next().map_or("…", String::as_str);
                return Some(format!(
                    "`{path}` has no condition: use `not`, `one_of`, `min`, `max` or `absent`, or the path `{path}.{member}`"
                ));
            }
            Self::Value(_) => return None,
            Self::Tests(tests) => tests,
        };
        let is_alone = *tests == ConditionTests { absent: tests.absent, ..ConditionTests::default() };
        if is_alone && tests.absent.is_none() {
            return Some(format!(
                "`{path}` has no condition: use a value, `not`, `one_of`, `min`, `max` or `absent`"
            ));
        }
        if !is_alone && tests.absent.is_some() {
            return Some(format!("`{path}` has a test beside `absent`: leave one of them out"));
        }
        if tests.one_of.as_ref().is_some_and(Vec::is_empty) {
            return Some(format!("`one_of` of `{path}` is empty: name the values"));
        }
        let mut values = tests.not.iter().chain(tests.one_of.iter().flatten());
        let lists = values.any(|value| !is_simple(value));
        lists.then(|| {
            format!("`{path}` is compared with a list or an object: use texts, numbers, `true` or `false`")
        })
    }
}

/// Returns whether a value is the one that is wanted. A text that may be a path has two readings, as it is and without `.`, `..` and `//`:
/// both have to match, or one.
fn is_equal(wanted: &Value, found: &Value, all: bool) -> bool {
    match (wanted, found) {
        (Value::String(pattern), Value::String(found)) => {
            let matches = pattern::matches(pattern, found);
            if !pattern.contains('/') || matches != all {
                return matches;
            }
            pattern::matches(&normalized(pattern), &normalized(found))
        }
        (Value::Number(wanted), Value::Number(found)) => compare(found, wanted) == Ordering::Equal,
        (wanted, found) => wanted == found,
    }
}

/// Returns a path without `.`, `..` and empty segments.
fn normalized(path: &str) -> String {
    let path = path.replace('\\', "/");
    let is_absolute = path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match (segment, segments.last()) {
            ("" | ".", _) => {}
            ("..", Some(last)) if *last != ".." => drop(segments.pop()),
            ("..", _) if is_absolute => {}
            (segment, _) => segments.push(segment),
        }
    }
    let is_directory = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
    let end = if is_directory && !segments.is_empty() { "/" } else { "" };
    format!("{}{}{end}", if is_absolute { "/" } else { "" }, segments.join("/"))
}

/// Compares numbers: integers exactly, whatever their size.
fn compare(one: &Number, other: &Number) -> Ordering {
    let integer = |number: &Number| number.as_i128();
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        // JSON has no number that cannot be ordered.
        _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Less),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_a_file_system_reads_it() {
        for (path, read) in [
            ("a//b/./c/../d", "a/b/d"),
            ("..", "../"),
            ("../a", "../a"),
            ("../../a", "../../a"),
            ("a/../../b", "../b"),
            ("a/../../../b", "../../b"),
            ("/../a", "/a"),
            ("/a/../../b", "/b"),
            ("/", "/"),
            ("/a/..", "/"),
            ("a/..", ""),
            ("a/b", "a/b"),
            ("a/b/", "a/b/"),
            ("a/b/.", "a/b/"),
            ("a/b/..", "a/"),
            ("a\\..\\b", "b"),
        ] {
            assert_eq!(normalized(path), read, "{path}");
        }
    }

    #[test]
    fn what_leads_out_of_a_folder_is_not_in_it() {
        let inside = Condition::Value("notes/*".into());
        for (path, allowed) in [
            ("notes/a", true),
            ("notes/../notes/a", true),
            ("notes/../../notes/a", false),
            ("notes/a/../../../notes/b", false),
            ("notes/..", false),
        ] {
            assert_eq!(inside.meets(Some(&path.into()), true), allowed, "{path}");
        }
    }

    #[test]
    fn a_path_of_names_is_bounded() {
        let condition = Condition::Value("x".into());
        let path = |names: usize| vec!["a"; names].join(".");
        assert_eq!(condition.fault(&path(MAX_NAMES)), None);
        assert!(condition.fault(&path(MAX_NAMES + 1)).unwrap().contains("at most 16 names"));
    }
}
