//! Scalars of the core schema.

use saphyr_parser::ScalarStyle;
use serde_json::{Number, Value};

/// Returns the value of a scalar.
///
/// # Errors
///
/// It is a number that JSON does not have.
pub(crate) fn scalar(text: &str, style: ScalarStyle) -> Result<Value, String> {
    if style != ScalarStyle::Plain {
        return Ok(text.into());
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "-.inf" | ".nan" | ".NaN" | ".NAN" => {
            return Err(format!("`{text}` is not a JSON number; quote it"));
        }
        _ => number(text).map_or_else(|| text.into(), Value::Number),
    })
}

/// Parses a number of the core schema.
fn number(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let fits = !digits.is_empty() && digits.bytes().all(|byte| char::from(byte).is_digit(radix));
            return u64::from_str_radix(digits, radix).ok().filter(|_| fits).map(Into::into);
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        if let Ok(whole) =
            text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from))
        {
            return Some(whole);
        }
    }
    let is_float = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let value: f64 = text.parse().ok().filter(|_| is_float)?;
    Number::from_f64(value)
}
