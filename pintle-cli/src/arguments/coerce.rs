use serde_json::{Number, Value};

use super::shape::{Shape, bare};
use crate::args::near;

/// Reads a text as a value of this shape. The error describes what is expected.
pub(super) fn coerce(shape: &Shape, text: &str) -> Result<Value, String> {
    let expected = || shape.described();
    match shape {
        Shape::Text => Ok(Value::String(text.to_owned())),
        Shape::Integer => integer(text).ok_or_else(expected),
        Shape::Number => text.parse::<Number>().map(Value::Number).map_err(|_| expected()),
        Shape::Boolean => match text {
            "true" | "yes" | "on" => Ok(Value::Bool(true)),
            "false" | "no" | "off" => Ok(Value::Bool(false)),
            _ => Err(expected()),
        },
        Shape::Null => match text {
            "null" | "" => Ok(Value::Null),
            _ => Err(expected()),
        },
        Shape::Choice(values) => values.iter().find(|value| bare(value) == text).cloned().ok_or_else(|| {
            let words: Vec<_> = values.iter().map(bare).collect();
            match near(text, words.iter().map(String::as_str)) {
                Some(meant) => format!("{} (did you mean `{meant}`?)", shape.described()),
                None => shape.described(),
            }
        }),
        Shape::List(item) if !text.starts_with('[') => Ok(Value::Array(vec![coerce(item, text)?])),
        Shape::List(_) => match serde_json::from_str(text) {
            Ok(Value::Array(items)) => Ok(Value::Array(items)),
            _ => Err(expected()),
        },
        Shape::Object => match serde_json::from_str(text) {
            Ok(Value::Object(members)) => Ok(Value::Object(members)),
            _ => Err(expected()),
        },
        // Any text is a text: the others come first.
        Shape::OneOf(shapes) => {
            let (texts, others): (Vec<_>, Vec<_>) = shapes.iter().partition(|shape| **shape == Shape::Text);
            // No text is an empty one, where a text can be given.
            let others = others.into_iter().filter(|_| !text.is_empty() || texts.is_empty());
            others.chain(texts.clone()).find_map(|shape| coerce(shape, text).ok()).ok_or_else(expected)
        }
        Shape::Any => Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))),
    }
}

fn integer(text: &str) -> Option<Value> {
    let signed = text.parse::<i64>().ok().map(Value::from);
    signed.or_else(|| text.parse::<u64>().ok().map(Value::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_becomes_a_value_of_its_shape() {
        let list = |item| Shape::List(Box::new(item));
        let either = Shape::OneOf(vec![Shape::Text, Shape::Integer, Shape::Null]);
        for (shape, text, value) in [
            (Shape::Text, "7", json!("7")),
            (Shape::Integer, "-7", json!(-7)),
            (Shape::Integer, "18446744073709551615", json!(u64::MAX)),
            (Shape::Number, "1.5e3", json!(1500.0)),
            (Shape::Boolean, "yes", json!(true)),
            (Shape::Choice(vec![json!(1), json!("b")]), "1", json!(1)),
            (list(Shape::Integer), "7", json!([7])),
            (list(Shape::Integer), "[7, 8]", json!([7, 8])),
            (Shape::Object, r#"{"a":1}"#, json!({"a": 1})),
            (either.clone(), "7", json!(7)),
            (either.clone(), "seven", json!("seven")),
            (either.clone(), "null", json!(null)),
            (either, "", json!("")),
            (Shape::OneOf(vec![Shape::Integer, Shape::Null]), "", json!(null)),
            (Shape::Any, "[1]", json!([1])),
            (Shape::Any, "x y", json!("x y")),
        ] {
            assert_eq!(coerce(&shape, text), Ok(value));
        }
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        for (shape, text, expected) in [
            (Shape::Integer, "1.5", "an integer"),
            (Shape::Number, "NaN", "a number"),
            (Shape::Boolean, "1", "`true` or `false`"),
            (Shape::Object, "[1]", "a JSON object"),
            (Shape::List(Box::new(Shape::Boolean)), "x", "`true` or `false`"),
        ] {
            assert_eq!(coerce(&shape, text), Err(expected.to_owned()));
        }
    }
}
