//! Doc comments whose first sentence begins with something other than its subject.

use super::super::Fault;
use super::super::tree::Tree;
use super::Measured;

/// First words that make the reader guess what is meant.
const RIDDLES: &[&str] = &["The same", "What", "Who", "Whom", "Whose", "Whoever", "Whatever", "It", "Its"];

pub(super) fn measure(tree: &Tree) -> Measured {
    let mut offenders = Vec::new();
    for source in tree.sources.iter().filter(|source| source.in_src()) {
        let (mut at, mut open) = (0, false);
        for (index, line) in source.raw.split_inclusive('\n').enumerate() {
            let trimmed = line.trim_start();
            let start = at + line.len() - trimmed.len();
            at += line.len();
            // A comment is blanked out of `code`; a line of a string that looks like one is not.
            let comment = source.code.as_bytes().get(start) == Some(&b' ');
            let text = doc_text(trimmed).filter(|_| comment);
            let Some(text) = text else {
                open = false;
                continue;
            };
            if open || text.is_empty() {
                continue;
            }
            open = true;
            if let Some(first) = RIDDLES.iter().find(|first| begins(text, first))
                && !source.is_test(start)
            {
                let what = format!("begins with \"{first}\": {}", text.chars().take(80).collect::<String>());
                offenders.push(Fault::new(&source.path, index + 1, what));
            }
        }
    }
    Measured { value: offenders.len(), offenders }
}

/// The text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let text = line
        .strip_prefix("///")
        .filter(|rest| !rest.starts_with('/'))
        .or_else(|| line.strip_prefix("//!"))?;
    Some(text.trim())
}

fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str) -> Vec<usize> {
        let measured = measure(&Tree::of(&[("pintle/src/lib.rs", file)]));
        assert_eq!(measured.value, measured.offenders.len());
        measured.offenders.iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn a_first_sentence_that_is_a_riddle_is_found() {
        assert_eq!(
            found("//! What it does.\n\n/// The same, twice.\nfn a() {}\n    /// It's one.\nfn b() {}\n"),
            [1, 3, 5]
        );
    }

    #[test]
    fn only_the_first_sentence_counts() {
        assert!(found("/// Returns a thing.\n/// What follows.\n///\n/// It is.\nfn a() {}\n").is_empty());
        assert!(
            found("/// Whether it is.\nfn a() {}\n/// Items.\nfn b() {}\n// What now.\n//// What.\n")
                .is_empty()
        );
    }

    #[test]
    fn strings_and_tests_do_not_count() {
        assert!(
            found(
                "const A: &str = \"\n/// What it is.\n\";\n#[cfg(test)]\nmod t {\n/// What.\nfn a() {}\n}\n"
            )
            .is_empty()
        );
    }
}
