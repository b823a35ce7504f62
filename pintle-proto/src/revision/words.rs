//! The words that a text must contain for a step to change it, derived from the edits once for each revision.

use std::{collections::BTreeSet, sync::LazyLock};

use pintle_types::method;

use super::{
    Part, Revision,
    dialect::DIALECTS,
    edits::{Rule, Step},
};

/// The relevant words for one payload.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Words {
    /// Whether every payload may be changed.
    anything: bool,
    list: Vec<&'static str>,
    /// The first bytes of the words, each once; 0 fills up.
    letters: [u8; 8],
}

/// The words for lowering and raising, by part.
struct RowWords {
    lower: [PartWords; 2],
    raise: [PartWords; 2],
}

/// The words for the params, or for the results, of every method.
struct PartWords {
    /// The words of methods that have specific ones.
    named: Vec<(&'static str, Words)>,
    /// The words of all other methods.
    other: Words,
}

/// The words of each row of the dialect table, in its order.
static ROWS: LazyLock<Vec<RowWords>> = LazyLock::new(|| {
    let rows = (0..DIALECTS.len()).map(|row| {
        let revision = Revision(row);
        let both = |rules: &[&'static [Rule]]| {
            [PartWords::new(Part::Params, rules), PartWords::new(Part::Result, rules)]
        };
        let lower: Vec<_> = revision.lowering().collect();
        let raise: Vec<_> = revision.raising().collect();
        RowWords { lower: both(&lower), raise: both(&raise) }
    });
    rows.collect()
});

/// Returns the relevant words for lowering this part to the revision of the row `row`.
pub(super) fn lowering(row: usize, part: Part<'_>) -> Option<&'static Words> {
    ROWS.get(row).map(|row| PartWords::find(&row.lower, part))
}

/// Returns the relevant words for raising this part from the revision of the row `row`.
pub(super) fn raising(row: usize, part: Part<'_>) -> Option<&'static Words> {
    ROWS.get(row).map(|row| PartWords::find(&row.raise, part))
}

impl PartWords {
    fn new(part: fn(&'static str) -> Part<'static>, rules: &[&'static [Rule]]) -> Self {
        let rules = || rules.iter().flat_map(|rules| rules.iter());
        let words = |method| {
            let mut words = Vec::new();
            for rule in rules().filter(|rule| rule.0.selects(part(method))) {
                rule.1.iter().for_each(|edit| edit.add_words(&mut words));
            }
            Words::new(words)
        };
        let table = method::REQUESTS.iter().chain(method::NOTIFICATIONS).map(|row| row.name);
        let mut methods: Vec<_> = table.collect();
        let named: BTreeSet<_> = rules().flat_map(|rule| rule.0.named().iter().copied()).collect();
        methods.extend(named.into_iter().filter(|name| method::find(name).is_none()));
        // No method has this name: the rules that select it apply to all methods.
        let other = words("");
        let named = methods.into_iter().map(|method| (method, words(method)));
        Self { named: named.filter(|(_, words)| *words != other).collect(), other }
    }

    fn find<'a>([params, result]: &'a [Self; 2], part: Part<'_>) -> &'a Words {
        let (of, method) = match part {
            Part::Params(method) => (params, method),
            Part::Result(method) => (result, method),
        };
        of.named.iter().find(|(name, _)| *name == method).map_or(&of.other, |(_, words)| words)
    }
}

impl Words {
    fn new(mut list: Vec<&'static str>) -> Self {
        list.sort_unstable();
        list.dedup();
        if list.first() == Some(&"") {
            return Self { anything: true, list: Vec::new(), letters: [0; 8] };
        }
        let mut letters = [0; 8];
        let first: BTreeSet<_> = list.iter().filter_map(|word| word.bytes().next()).collect();
        letters.iter_mut().zip(first).for_each(|(letter, first)| *letter = first);
        Self { anything: false, list, letters }
    }

    /// Returns whether a JSON string in `text` begins with one of the words. False positives are possible, false
    /// negatives are not.
    pub(super) fn occur(&self, text: &str) -> bool {
        if self.list.is_empty() {
            return self.anything;
        }
        let bytes = text.as_bytes();
        // A first pass for short texts, which rarely contain any.
        if bytes.len() < SHORT && !self.might_occur(bytes) {
            return false;
        }
        let first = self.list.iter().filter_map(|word| word.bytes().next());
        let letters = first.fold(0, |set, letter| set | bit(letter));
        memchr::memchr2_iter(b'"', b'\\', bytes).any(|at| match (bytes[at], bytes.get(at + 1..)) {
            (b'"', Some(rest @ [letter, ..])) => letters & bit(*letter) != 0 && self.begin(rest),
            (b'\\', Some([b'u', b'0', b'0', digit, ..])) => escapes_ascii(*digit),
            _ => false,
        })
    }

    /// Returns whether a string may begin with one of the words or with an escape, judged by two bytes. All bytes are
    /// tested, so that the compiler vectorizes the loop.
    fn might_occur(&self, bytes: &[u8]) -> bool {
        let [a, b, c, d, e, f, g, h] = self.letters;
        let is = |one: u8, other: u8| u8::from(one == other);
        let escape = |one: u8, next: u8| is(one, b'\\') & is(next, b'u');
        let pairs = || bytes.iter().zip(bytes.get(1..).unwrap_or_default());
        if e == 0 {
            return pairs().fold(0, |found, (one, next)| {
                let letter = is(*next, a) | is(*next, b) | is(*next, c) | is(*next, d);
                found | (is(*one, b'"') & letter) | escape(*one, *next)
            }) != 0;
        }
        // More than eight letters do not fit: only the second pass can decide then.
        let many = self.list.iter().filter_map(|word| word.bytes().next());
        if many.into_iter().any(|letter| !self.letters.contains(&letter)) {
            return true;
        }
        pairs().fold(0, |found, (one, next)| {
            let letter = is(*next, a) | is(*next, b) | is(*next, c) | is(*next, d);
            let letter = letter | is(*next, e) | is(*next, f) | is(*next, g) | is(*next, h);
            found | (is(*one, b'"') & letter) | escape(*one, *next)
        }) != 0
    }

    fn begin(&self, rest: &[u8]) -> bool {
        self.list.iter().any(|word| rest.starts_with(word.as_bytes()))
    }
}

/// The length below which testing each pair of bytes is cheaper than searching for quotes.
const SHORT: usize = 512;

/// Returns the bit of a letter in a set. Letters that share one are distinguished by comparing the word.
fn bit(letter: u8) -> u64 {
    1 << (letter & 63)
}

/// Returns whether `\u00` and this digit escape printable ASCII. A peer may write `_` as `\u005f`. No serializer does,
/// so it counts as a match.
fn escapes_ascii(digit: u8) -> bool {
    matches!(digit, b'2'..=b'7')
}

impl Step {
    /// Returns whether a text of this part may need the edits down, as [`Revision::lowers`] does.
    #[cfg(test)]
    pub(super) fn lowers(self, part: Part<'_>, text: &str) -> bool {
        let mut words = Vec::new();
        for rule in self.down.iter().filter(|rule| rule.0.selects(part)) {
            rule.1.iter().for_each(|edit| edit.add_words(&mut words));
        }
        Words::new(words).occur(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurs(words: &[&'static str], text: &str) -> bool {
        Words::new(words.to_vec()).occur(text)
    }

    #[test]
    fn a_word_counts_where_a_string_begins() {
        let words = &["icons", "_meta"];
        assert!(occurs(words, r#"{"a":{"_meta":{}}}"#));
        assert!(occurs(words, r#"{"a":"icons"}"#));
        assert!(!occurs(words, r#"{"a":"no icons here, no _meta"}"#));
        assert!(!occurs(&[], r#"{"_meta":1}"#));
        assert!(occurs(&["", "x"], "{}"));
    }

    #[test]
    fn many_words_are_found_as_few_are() {
        let eight = ["a", "b", "c", "d", "e", "f", "g", "h", "ha"];
        let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        for words in [&eight[..4], &eight, &nine] {
            for word in words {
                assert!(occurs(words, &format!(r#"{{"{word}":1}}"#)), "{word} of {words:?}");
            }
            assert!(!occurs(words, r#"{"z":"y a b"}"#));
        }
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
