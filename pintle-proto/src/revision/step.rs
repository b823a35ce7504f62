use serde_json::Value;

use super::{Part, Unsayable};

/// The way between a revision and the next newer one.
pub(super) struct Step {
    /// From the newer shapes to this revision's.
    pub(super) lower: fn(Part<'_>, &mut Value) -> Result<(), Unsayable>,
    /// From this revision's shapes to the newer.
    pub(super) raise: fn(Part<'_>, &mut Value),
    /// Member names and string values, one of which must occur for `lower` to change or refuse anything.
    pub(super) lowers: fn(Part<'_>) -> &'static [&'static str],
    /// The same for `raise`.
    pub(super) raises: fn(Part<'_>) -> &'static [&'static str],
}

/// The step of the newest revision: its shapes are canonical.
pub(super) const CANONICAL: Step =
    Step { lower: |_, _| Ok(()), raise: |_, _| (), lowers: |_| NOTHING, raises: |_| NOTHING };

/// No word matters.
pub(super) const NOTHING: &[&str] = &[];

/// The empty word: any payload may be changed.
pub(super) const ANYTHING: &[&str] = &[""];

/// How every key that the protocol reserves begins. Short of the slash, which some print as `\/`.
pub(super) const RESERVED: &str = "io.modelcontextprotocol";

/// Whether a JSON string in `text` begins with one of `words`. May say yes too often, never too rarely.
///
/// One walk over the quotes, whatever the number of words, and one over the backslashes.
pub(super) fn occurs(words: &[&str], text: &str) -> bool {
    if words.is_empty() {
        return false;
    }
    if words == ANYTHING {
        return true;
    }
    let begins = |rest: &str| words.iter().any(|word| rest.starts_with(word));
    if text.len() < SHORT {
        // Byte by byte: for a result of a line or two the searches below cost five times as much to set up.
        return text.bytes().enumerate().any(|(at, byte)| match byte {
            b'"' => text.get(at + 1..).is_some_and(begins),
            b'\\' => text.get(at + 1..).is_some_and(escapes_ascii),
            _ => false,
        });
    }
    after_each('"', text).any(begins) || after_each('\\', text).any(escapes_ascii)
}

/// Below this many bytes a search is dearer than a loop.
const SHORT: usize = 512;

fn after_each(mark: char, text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(mark)? + 1..];
        Some(rest)
    })
}

/// A peer may write `_` as `\u005f`. No printer does, so any printable ASCII written that way counts as a hit.
fn escapes_ascii(rest: &str) -> bool {
    rest.starts_with("u00") && matches!(rest.as_bytes().get(3), Some(b'2'..=b'7'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_where_a_string_begins() {
        let words = &["icons", "_meta"];
        assert!(occurs(words, r#"{"a":{"_meta":{}}}"#));
        assert!(occurs(words, r#"{"a":"icons"}"#));
        assert!(!occurs(words, r#"{"a":"no icons here, no _meta"}"#));
        assert!(!occurs(NOTHING, r#"{"_meta":1}"#));
        assert!(occurs(ANYTHING, "{}"));
    }

    #[test]
    fn an_escaped_name_is_not_missed() {
        assert!(occurs(&["_meta"], r#"{"\u005fmeta":{}}"#));
        assert!(!occurs(&["_meta"], r#"{"text":"\u001b[0m \u00e9 \\u \" \n"}"#));
    }
}
