use serde_json::{Map, Value};

use crate::Limits;

/// The limit of the front matter, in bytes.
const MAX_FRONT_MATTER: usize = 64 << 10;
/// The limit of nesting.
const MAX_DEPTH: usize = 32;

/// A text that begins with YAML between lines `---`, such as a Markdown file. Aliases are refused in it.
///
/// ```
/// use pintle_yaml::FrontMatter;
///
/// let text = "---\ntitle: Review\n---\nReview this change.\n";
/// let front = FrontMatter::parse(text)?;
/// assert_eq!((front.members["title"].as_str(), front.body), (Some("Review"), "Review this change.\n"));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct FrontMatter<'a> {
    /// The front matter.
    pub members: Map<String, Value>,
    /// The text after it.
    pub body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Parses the front matter of a text.
    ///
    /// # Errors
    ///
    /// There is none, or it is not a mapping that [`parse`](crate::parse) reads. The error says what is wrong.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let (yaml, body) = split(text)?;
        let mut limits = Limits::default();
        (limits.depth, limits.aliased) = (MAX_DEPTH, 0);
        let value = crate::parse(yaml, &limits).map_err(|error| format!("the front matter, {error}"))?;
        match value {
            Value::Object(members) => Ok(Self { members, body }),
            _ => Err("the front matter is not a mapping; write lines such as `description: …`".to_owned()),
        }
    }
}

/// Splits a text into its front matter, with the marker before it, and the rest.
fn split(text: &str) -> Result<(&str, &str), String> {
    let missing = || "there is no front matter; begin the file with a line `---`".to_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let is_marker = line.trim_end() == "---";
        match number {
            0 if is_marker => {}
            0 => return Err(missing()),
            _ if is_marker => {
                let body = text[at..].trim_start_matches(['\r', '\n']);
                return Ok((&text[..start], body));
            }
            _ if at > MAX_FRONT_MATTER => {
                return Err(format!("the front matter has more than {MAX_FRONT_MATTER} bytes; shorten it"));
            }
            _ => {}
        }
    }
    Err("the front matter does not end; end it with a line `---`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(yaml: &str) -> Result<Value, String> {
        let text = format!("---\n{yaml}\n---\nbody");
        FrontMatter::parse(&text).map(|front| Value::Object(front.members))
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (yaml, reason) in [
            ("a: 1\na: 2", "twice"),
            ("a: &x 1\nb: *x", "alias"),
            ("a: !!binary aGk=", "tag"),
            ("? [a]\n: b", "key"),
            ("- a", "mapping"),
            ("a: .nan", "number"),
            ("a: [", "YAML"),
            (&format!("a: {}{}", "[".repeat(40), "]".repeat(40)), "deep"),
        ] {
            let refused = members(yaml).unwrap_err();
            assert!(refused.contains(reason), "{yaml}: {refused}");
        }
        assert!(members(&format!("a: {}", "x".repeat(70_000))).unwrap_err().contains("bytes"));
        assert!(FrontMatter::parse("no").unwrap_err().contains("begin"));
        assert!(FrontMatter::parse("---\na: 1\n").unwrap_err().contains("end"));
    }

    #[test]
    fn the_body_is_what_follows() {
        let front = FrontMatter::parse("\u{feff}---\r\nname: a\r\n---\r\n\r\nSay --- hello.\n---\n").unwrap();
        assert_eq!((front.members["name"].as_str(), front.body), (Some("a"), "Say --- hello.\n---\n"));
    }
}
