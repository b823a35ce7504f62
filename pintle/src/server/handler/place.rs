//! Where in a text a reader stopped.

use serde_json::Error;

/// Characters of a value that are shown.
const SHOWN: usize = 60;

/// What a reader says of a value in a JSON text, with the place and the value, for whoever sent it.
pub(crate) fn told(text: &str, error: &Error) -> String {
    let said = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let said = said.strip_suffix(&position).unwrap_or(&said);
    let (pointer, value) = find(text, offset(text, error));
    let name = if pointer.is_empty() { "the value".to_owned() } else { format!("`{pointer}`") };
    let shown: String = value.chars().take(SHOWN).collect();
    let more = if shown.len() < value.len() { "…" } else { "" };
    let is = if shown.is_empty() { String::new() } else { format!(" is `{shown}{more}`, which") };
    format!("{name}{is} cannot be read: {said}\ncorrect it and try again")
}

/// How many bytes were read.
fn offset(text: &str, error: &Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    (lines.map(str::len).sum::<usize>() + error.column()).min(text.len())
}

/// A list or object that is not closed yet.
struct Open {
    starts: usize,
    inside: Inside,
}

enum Inside {
    List { at: usize },
    Object { name: String, named: bool },
}

/// The pointer to the value that ends at an offset of a valid JSON text, and its text.
fn find(text: &str, offset: usize) -> (String, &str) {
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut starts = offset;
    let mut at = 0;
    while let Some(byte) = bytes.get(at).filter(|_| at < offset) {
        let first = at;
        at += 1;
        match byte {
            b'{' => {
                open.push(Open {
                    starts: first,
                    inside: Inside::Object { name: String::new(), named: false },
                });
                starts = offset;
            }
            b'[' => {
                open.push(Open { starts: first, inside: Inside::List { at: 0 } });
                starts = offset;
            }
            b'}' | b']' => starts = open.pop().map_or(offset, |closed| closed.starts),
            b',' => {
                match open.last_mut().map(|open| &mut open.inside) {
                    Some(Inside::List { at }) => *at += 1,
                    Some(Inside::Object { named, .. }) => *named = false,
                    None => {}
                }
                starts = offset;
            }
            b':' => starts = offset,
            b'"' => {
                at = string_end(bytes, at).min(offset);
                match open.last_mut().map(|open| &mut open.inside) {
                    Some(Inside::Object { name, named }) if !*named => {
                        *named = true;
                        *name = text
                            .get(first..at)
                            .and_then(|t| serde_json::from_str(t).ok())
                            .unwrap_or_default();
                    }
                    _ => starts = first,
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            // A number or a word.
            _ => {
                let rest = bytes.get(at..offset).unwrap_or_default();
                at += rest.iter().take_while(|byte| !b",:]} \t\r\n".contains(byte)).count();
                starts = first;
            }
        }
    }
    let mut pointer = String::new();
    for Open { inside, .. } in &open {
        let name = match inside {
            Inside::List { at } => at.to_string(),
            Inside::Object { name, .. } => name.replace('~', "~0").replace('/', "~1"),
        };
        pointer.push('/');
        pointer.push_str(&name);
    }
    (pointer, text.get(starts..offset).unwrap_or_default())
}

/// Where a string ends whose inner text starts at `at`.
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
    fn the_place_and_the_value_are_told() {
        for (text, expected) in [
            (r#"{"n":1e400}"#, "`/n` is `1e400`, which cannot be read: number out of range"),
            (
                r#"{"n":"x, y"}"#,
                "`/n` is `\"x, y\"`, which cannot be read: invalid type: string \"x, y\", expected i64",
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
            (r#"{"n":{}}"#, "`/n` cannot be read: invalid type: map, expected i64"),
        ] {
            let error = serde_json::from_str::<Read>(text).unwrap_err();
            assert_eq!(told(text, &error), format!("{expected}\ncorrect it and try again"));
        }
    }
}
