//! Names in shipped source that hold a retired word, and files named by one.

use std::collections::BTreeMap;

use super::super::Fault;
use super::super::source::{Source, is_name};
use super::super::tree::Tree;
use super::Measured;

/// Retired words: `word: what to say instead`, one a line.
const LIST: &str = "xtask/retired-words.txt";

/// One offender for each name in each file.
pub(super) fn measure(tree: &Tree) -> Measured {
    let retired = retired(tree);
    let mut offenders = Vec::new();
    for source in tree.sources.iter().filter(|source| source.in_src()) {
        let stem = source.inside.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
        offenders.extend(fault(source, None, stem, &retired));
        for (name, at) in names(source) {
            offenders.extend(fault(source, Some(at), name, &retired));
        }
    }
    Measured { value: offenders.len(), offenders }
}

fn retired(tree: &Tree) -> BTreeMap<&str, &str> {
    let lines = tree.text(LIST).lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(word, instead)| (word.trim(), instead.trim()))
        .collect()
}

fn fault(source: &Source, at: Option<usize>, name: &str, retired: &BTreeMap<&str, &str>) -> Option<Fault> {
    let parts = parts(name);
    let (word, instead) = parts.iter().find_map(|part| retired.get_key_value(part.as_str()))?;
    // Counting lines is slow, and few names get here.
    let line = at.map_or(0, |at| source.line(at));
    Some(Fault::new(&source.path, line, format!("`{name}` holds `{word}`: {instead}")))
}

/// Every name in shipped code with the place where it comes first.
fn names(source: &Source) -> BTreeMap<&str, usize> {
    let bare = source.bare.as_bytes();
    let (mut found, mut at) = (BTreeMap::new(), 0);
    while at < bare.len() {
        let length = bare[at..].iter().take_while(|byte| is_name(**byte)).count();
        if length > 0 && !source.is_test(at) {
            found.entry(&source.bare[at..at + length]).or_insert(at);
        }
        at += length.max(1);
    }
    found
}

/// The words of a name, in lower case: `ear` and `count` for `ear_count`, `EarCount` and `EAR_COUNT`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split('_') {
        let mut part = String::new();
        let mut small = false;
        for letter in piece.chars() {
            if letter.is_uppercase() && small {
                parts.push(std::mem::take(&mut part));
            }
            small = letter.is_lowercase();
            part.extend(letter.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart_at_case_and_underscore() {
        assert_eq!(parts("EarCount"), ["ear", "count"]);
        assert_eq!(parts("MAX_EAR"), ["max", "ear"]);
        assert_eq!(parts("prick_ears2"), ["prick", "ears2"]);
    }

    #[test]
    fn a_retired_word_is_found_in_names_of_shipped_code() {
        let tree = Tree::of(&[
            (LIST, "# why\near: inbox\n"),
            (
                "pintle/src/lib.rs",
                "// ear\nfn near(year: u8) { \"ear\"; }\nstruct MyEar;\nstatic EAR: MyEar = MyEar;\n",
            ),
            ("pintle/src/ear.rs", "#[cfg(test)]\nmod tests { fn ear() {} }\n"),
            ("pintle/tests/it/main.rs", "fn ear() {}"),
        ]);
        let found: Vec<String> = measure(&tree).offenders.iter().map(Fault::to_string).collect();
        assert_eq!(
            found,
            [
                "pintle/src/ear.rs: `ear` holds `ear`: inbox",
                "pintle/src/lib.rs:4: `EAR` holds `ear`: inbox",
                "pintle/src/lib.rs:3: `MyEar` holds `ear`: inbox",
            ]
        );
    }
}
