/// Returns the message of a decoding error in terms of JSON: without names of Rust types, and without the line and column,
/// which are counted from the start of a member.
///
/// ```
/// use pintle_types::{plain_error, schema::Tool};
///
/// let error = serde_json::from_str::<Vec<Tool>>(r#"["add"]"#).unwrap_err();
/// assert_eq!(plain_error(&error), r#"invalid type: string "add", expected an object"#);
/// ```
pub fn plain_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
    if message.starts_with("data did not match any variant of") {
        return "it has none of the shapes that it may have".into();
    }
    match message.rsplit_once(", expected ") {
        Some((found, expected)) => format!("{found}, expected {}", shape(expected)),
        None => message.into(),
    }
}

fn shape(expected: &str) -> &str {
    let first = expected.split(' ').next().unwrap_or_default();
    match first {
        "struct" | "internally" | "adjacently" => "an object",
        "tuple" => "an array",
        "unit" => "null",
        "enum" => "one of the names that are allowed",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => {
            "an integer in range"
        }
        "f32" | "f64" => "a number",
        _ => match expected {
            "a map" => "an object",
            "a sequence" => "an array",
            "a borrowed string" => "a string",
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::plain_error;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only what cannot be read matters")]
    struct Secret {
        n: u8,
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    enum Kind {
        #[serde(rename = "a")]
        A,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "only what cannot be read matters")]
    enum Either {
        Text(String),
        Number(u8),
    }

    #[test]
    fn no_names_of_rust_types() {
        let secret = |text: &str| plain_error(&serde_json::from_str::<Secret>(text).unwrap_err());
        for (text, detail) in [
            ("7", "invalid type: integer `7`, expected an object"),
            (r#"{"n":300}"#, "invalid value: integer `300`, expected an integer in range"),
            (r#"{"n":"x"}"#, r#"invalid type: string "x", expected an integer in range"#),
            (r#"{"n":1}"#, "missing field `kind`"),
            (r#"{"n":1,"kind":"b"}"#, "unknown variant `b`, expected `a`"),
        ] {
            assert_eq!(secret(text), detail);
        }
        let either = serde_json::from_str::<Either>("[]").unwrap_err();
        assert_eq!(plain_error(&either), "it has none of the shapes that it may have");
    }
}
