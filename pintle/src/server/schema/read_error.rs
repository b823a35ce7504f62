//! Messages for JSON that could not be decoded, with the position of the value.

use pintle_types::plain_error;
use serde_json::Error;

/// The limit on the characters of a value that a message shows.
const MAX_SHOWN: usize = 60;

/// Returns a message for the sender of a JSON text that could not be decoded: the pointer, the value and the reason.
pub(crate) fn describe(text: &str, error: &Error) -> String {
    let reason = plain_error(error);
    let (pointer, value) = value_before(text, offset(text, error));
    let name = if pointer.is_empty() { "the value".to_owned() } else { format!("`{pointer}`") };
    let shown: String = value.chars().take(MAX_SHOWN).collect();
    let more = if shown.len() < value.len() { "…" } else { "" };
    let is = if shown.is_empty() { String::new() } else { format!(" is `{shown}{more}`, which") };
    format!("{name}{is} cannot be read: {reason}\ncorrect it and try again")
}

/// Returns the number of bytes that were read before the error.
fn offset(text: &str, error: &Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    (lines.map(str::len).sum::<usize>() + error.column()).min(text.len())
}

/// A list or object that is not closed yet.
struct Container {
    starts: usize,
    position: ErrorPosition,
}

/// The position of the current value in its container.
enum ErrorPosition {
    Index(usize),
    /// A member; `has_name` is false until its name has been read.
    Member {
        name: String,
        has_name: bool,
    },
}

/// Returns the pointer to the value that ends at an offset of a valid JSON text, and the value's text.
fn value_before(text: &str, offset: usize) -> (String, &str) {
    let bytes = text.as_bytes();
    let mut open: Vec<Container> = Vec::new();
    let mut starts = offset;
    let mut at = 0;
    while let Some(byte) = bytes.get(at).filter(|_| at < offset) {
        let first = at;
        at += 1;
        match byte {
            b'{' => {
                let position = ErrorPosition::Member { name: String::new(), has_name: false };
                open.push(Container { starts: first, position });
                starts = offset;
            }
            b'[' => {
                open.push(Container { starts: first, position: ErrorPosition::Index(0) });
                starts = offset;
            }
            b'}' | b']' => starts = open.pop().map_or(offset, |closed| closed.starts),
            b',' => {
                match open.last_mut().map(|container| &mut container.position) {
                    Some(ErrorPosition::Index(index)) => *index += 1,
                    Some(ErrorPosition::Member { has_name, .. }) => *has_name = false,
                    None => {}
                }
                starts = offset;
            }
            b':' => starts = offset,
            b'"' => {
                at = string_end(bytes, at).min(offset);
                match open.last_mut().map(|container| &mut container.position) {
                    Some(ErrorPosition::Member { name, has_name }) if !*has_name => {
                        *has_name = true;
                        *name = text
                            .get(first..at)
                            .and_then(|t| serde_json::from_str(t).ok())
                            .unwrap_or_default();
                    }
                    _ => starts = first,
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            // A number or a literal.
            _ => {
                let rest = bytes.get(at..offset).unwrap_or_default();
                at += rest.iter().take_while(|byte| !b",:]} \t\r\n".contains(byte)).count();
                starts = first;
            }
        }
    }
    (pointer(&open), text.get(starts..offset).unwrap_or_default())
}

/// Returns the JSON pointer to the current value of the innermost container.
fn pointer(open: &[Container]) -> String {
    let mut pointer = String::new();
    for Container { position, .. } in open {
        let token = match position {
            ErrorPosition::Index(index) => index.to_string(),
            ErrorPosition::Member { name, .. } => name.replace('~', "~0").replace('/', "~1"),
        };
        pointer.push('/');
        pointer.push_str(&token);
    }
    pointer
}

/// Returns the end of a string whose content starts at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Read {
        n: i64,
        #[serde(default)]
        hosts: Vec<std::net::IpAddr>,
        #[serde(default, rename = "a/b")]
        inner: Option<Box<Self>>,
    }

    #[test]
    fn the_message_has_the_pointer_and_the_value() {
        for (text, expected) in [
            (r#"{"n":1e400}"#, "`/n` is `1e400`, which cannot be read: number out of range"),
            (
                r#"{"n":"x, y"}"#,
                "`/n` is `\"x, y\"`, which cannot be read: invalid type: string \"x, y\", expected an integer in range",
            ),
            (
                "{\"n\":1,\n \"a/b\": {\"hosts\":[\"::1\", \"no\\\"pe\"]}}",
                "`/a~1b/hosts/1` is `\"no\\\"pe\"`, which cannot be read: invalid IP address syntax",
            ),
            (
                r#"{"n":1,"a/b":{"hosts":[]}}"#,
                "`/a~1b` is `{\"hosts\":[]}`, which cannot be read: missing field `n`",
            ),
            (r#"{"hosts":[]}"#, "the value is `{\"hosts\":[]}`, which cannot be read: missing field `n`"),
            (r#"{"n":{}}"#, "`/n` cannot be read: invalid type: map, expected an integer in range"),
        ] {
            let error = serde_json::from_str::<Read>(text).unwrap_err();
            assert_eq!(describe(text, &error), format!("{expected}\ncorrect it and try again"));
        }
    }
}
