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

/// Below this, a look at each pair of bytes costs less than beginning a wide search behind each quote. Nearly always no
/// word begins like one of those that matter. (Measured: 570 instructions in place of 1,230 for params of 115 bytes.)
const SHORT: usize = 512;

/// Whether a JSON string in `text` begins with one of `words`. May say yes too often, never too rarely.
///
/// One walk over quotes and backslashes, whatever the number of words, with a look at the letter behind each. (Measured:
/// 700 of 48,400 instructions of a small call over HTTP, where the words were compared behind each quote.)
pub(super) fn occurs(words: &[&str], text: &str) -> bool {
    if words.is_empty() {
        return false;
    }
    if words == ANYTHING {
        return true;
    }
    let letters =
        words.iter().filter_map(|word| word.bytes().next()).fold(0, |set, letter| set | bit(letter));
    let bytes = text.as_bytes();
    let hits = |at: usize, before: u8| match (before, bytes.get(at..)) {
        (b'"', Some([letter, ..])) => letters & bit(*letter) != 0 && begins(words, bytes, at),
        (b'\\', Some([b'u', b'0', b'0', digit, ..])) => escapes_ascii(*digit),
        _ => false,
    };
    if bytes.len() < SHORT && !might(words, bytes) {
        return false;
    }
    memchr::memchr2_iter(b'"', b'\\', bytes).any(|at| hits(at + 1, bytes[at]))
}

/// Whether a string begins like one of the words, or with an escape, as far as two bytes tell. All are looked at, so that
/// the compiler makes one wide pass of it.
fn might(words: &[&str], bytes: &[u8]) -> bool {
    let mut letters = [0; 4];
    for (at, word) in words.iter().enumerate() {
        match letters.get_mut(at) {
            Some(letter) => *letter = word.bytes().next().unwrap_or(0),
            None => return true,
        }
    }
    let [a, b, c, d] = letters;
    let is = |one: u8, other: u8| u8::from(one == other);
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    let found = pairs.fold(0, |found, (one, next)| {
        let letter = is(*next, a) | is(*next, b) | is(*next, c) | is(*next, d);
        found | (is(*one, b'"') & letter) | (is(*one, b'\\') & is(*next, b'u'))
    });
    found != 0
}

/// A place in a set of letters. Those that share one are told apart by comparing the word.
fn bit(letter: u8) -> u64 {
    1 << (letter & 63)
}

fn begins(words: &[&str], bytes: &[u8], at: usize) -> bool {
    bytes.get(at..).is_some_and(|rest| words.iter().any(|word| rest.starts_with(word.as_bytes())))
}

/// A peer may write `_` as `\u005f`. No printer does, so any printable ASCII written that way counts as a hit.
fn escapes_ascii(digit: u8) -> bool {
    matches!(digit, b'2'..=b'7')
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
    fn long_texts_are_searched_as_short_ones_are() {
        let around = "x".repeat(SHORT);
        assert!(occurs(&["_meta"], &format!(r#"{{"a":"{around}","_meta":{{}}}}"#)));
        assert!(!occurs(&["_meta"], &format!(r#"{{"a":"{around}","b":"no _meta"}}"#)));
    }

    #[test]
    fn an_escaped_name_is_not_missed() {
        assert!(occurs(&["_meta"], r#"{"\u005fmeta":{}}"#));
        assert!(!occurs(&["_meta"], r#"{"text":"\u001b[0m \u00e9 \\u \" \n"}"#));
    }
}
