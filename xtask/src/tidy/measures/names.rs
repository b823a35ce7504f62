//! Type names that a published crate defines more than once in shipped source.
//!
//! Structs, enums, unions, traits and type aliases count, private ones and those inside functions included. Associated types do
//! not, nor does a definition under `#[cfg(not(…))]`: it stands in for another.

use std::collections::BTreeMap;

use super::super::Fault;
use super::super::source::{Source, group_end, is_name};
use super::super::tree::Tree;
use super::Measured;

/// Names that may be defined twice: `crate Name: reason`, one a line.
const LISTED: &str = "xtask/reused-names.txt";
const KEYWORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

/// Where each name of each crate is defined.
type Definitions<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a Source, usize)>>;

/// The number of reused names that the list does not excuse.
pub(super) fn unlisted(tree: &Tree) -> Measured {
    let definitions = definitions(tree);
    let listed: Vec<(&str, &str)> = listed(tree).map(|(_, key)| key).collect();
    let reused: Vec<_> =
        definitions.iter().filter(|(key, places)| places.len() > 1 && !listed.contains(key)).collect();
    let mut offenders = Vec::new();
    for ((_, name), places) in &reused {
        for (source, at) in *places {
            let what = format!("`{name}`, defined {} times", places.len());
            offenders.push(Fault::new(&source.path, source.line(*at), what));
        }
    }
    Measured { value: reused.len(), offenders }
}

/// The share of all names that are reused, in percent, rounded up.
pub(super) fn percentage(tree: &Tree) -> Measured {
    let definitions = definitions(tree);
    let reused = definitions.values().filter(|places| places.len() > 1).count();
    Measured { value: (reused * 100).div_ceil(definitions.len().max(1)), offenders: Vec::new() }
}

/// Rows of the list that excuse nothing, or give no reason.
pub(super) fn stale(tree: &Tree) -> Vec<Fault> {
    let definitions = definitions(tree);
    let mut faults = Vec::new();
    for (line, key) in listed(tree) {
        if definitions.get(&key).is_none_or(|places| places.len() < 2) {
            let what = format!("`{} {}` is not defined twice; remove its row", key.0, key.1);
            faults.push(Fault::new(LISTED, line, what));
        }
    }
    for (index, line) in rows(tree) {
        if line.split_once(':').is_none_or(|(_, reason)| reason.trim().is_empty()) {
            faults.push(Fault::new(LISTED, index, format!("`{line}` is not `crate Name: reason`")));
        }
    }
    faults
}

fn rows(tree: &Tree) -> impl Iterator<Item = (usize, &str)> {
    let lines = tree.text(LISTED).lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn listed(tree: &Tree) -> impl Iterator<Item = (usize, (&str, &str))> {
    rows(tree).filter_map(|(index, line)| Some((index, line.split_once(':')?.0.trim().split_once(' ')?)))
}

fn definitions(tree: &Tree) -> Definitions<'_> {
    let mut found = Definitions::new();
    for source in tree.published().filter(|source| source.in_src()) {
        for (at, name) in defined(source) {
            found.entry((source.krate.as_str(), name)).or_default().push((source, at));
        }
    }
    found
}

/// The types that a file defines, outside its tests.
fn defined(source: &Source) -> Vec<(usize, &str)> {
    let bare = source.bare.as_str();
    let associated = associated(source);
    let mut found = Vec::new();
    for keyword in KEYWORDS {
        for at in source.words(keyword).filter(|at| !source.is_test(*at)) {
            let after = &bare[at + keyword.len()..];
            let name = after.trim_start();
            let name = &name[..name.bytes().take_while(|byte| is_name(*byte)).count()];
            let camel = name.starts_with(|first: char| first.is_ascii_uppercase());
            let apart = after.starts_with(char::is_whitespace);
            let in_impl = keyword == "type" && associated.iter().any(|range| range.contains(&at));
            if camel && apart && !in_impl && !stands_in(&bare[..at]) {
                found.push((at, name));
            }
        }
    }
    found
}

/// The bodies of impls and traits, in which `type` names an associated type.
fn associated(source: &Source) -> Vec<std::ops::Range<usize>> {
    let mut bodies = Vec::new();
    for keyword in ["impl", "trait"] {
        for at in source.words(keyword) {
            // `impl` is also a type: `fn f() -> impl Future {`. An item's follows the end of another item.
            let before = source.bare[..at].trim_end();
            let item = before.is_empty()
                || before.ends_with(['}', ';', '{', ']', ')'])
                || before.ends_with("pub")
                || before.ends_with("unsafe");
            if let Some(open) = source.bare[at..].find(['{', ';']).map(|open| at + open)
                && item
            {
                bodies.push(open..group_end(&source.bare, open));
            }
        }
    }
    bodies
}

/// Whether the attributes right before an item hold `#[cfg(not(…))]`.
fn stands_in(before: &str) -> bool {
    let item = before.rfind([';', '}', '{']).map_or(before, |end| &before[end + 1..]);
    item.contains("#[cfg(not(")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reused(file: &str) -> Vec<String> {
        let tree = Tree::of(&[("pintle/src/lib.rs", file), ("pintle-cli/src/main.rs", "struct Apart;")]);
        unlisted(&tree).offenders.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_name_defined_twice_is_found_at_both_places() {
        assert_eq!(
            reused("struct A;\nmod m {\n pub(crate) enum A {}\n}\nstruct Apart;"),
            ["pintle/src/lib.rs:1: `A`, defined 2 times", "pintle/src/lib.rs:3: `A`, defined 2 times"]
        );
    }

    #[test]
    fn associated_types_stand_ins_and_tests_do_not_count() {
        let file = "#[cfg(unix)]\nstruct A;\n#[cfg(not(unix))]\nstruct A;\nimpl I for A { type Out = u8; }\n\
                    impl I for B { type Out = u8; }\ntrait T { type Out; }\n#[cfg(test)]\nmod tests { struct A; }\n\
                    fn f() -> impl I { \"struct A;\"; struct_A }";
        assert!(reused(file).is_empty(), "{:?}", reused(file));
    }

    #[test]
    fn the_share_is_rounded_up() {
        let file = "struct A; struct B; struct C; mod m { struct A; }";
        assert_eq!(percentage(&Tree::of(&[("pintle/src/lib.rs", file)])).value, 34);
        assert_eq!(percentage(&Tree::of(&[])).value, 0);
    }

    #[test]
    fn the_list_excuses_and_has_to_be_true() {
        let file = "struct A; mod m { struct A; } struct B;";
        let of = |list: &str| {
            let tree = Tree::of(&[("pintle/src/lib.rs", file), (LISTED, list)]);
            (unlisted(&tree).value, stale(&tree).iter().map(Fault::to_string).collect::<Vec<_>>())
        };
        assert_eq!(of("# why\npintle A: one for each role\n"), (0, Vec::new()));
        assert_eq!(of("").0, 1);
        assert_eq!(
            of("pintle A: one for each role\npintle B: a reason\n").1,
            ["xtask/reused-names.txt:2: `pintle B` is not defined twice; remove its row"]
        );
        assert_eq!(
            of("pintle A:\n").1,
            ["xtask/reused-names.txt:1: `pintle A:` is not `crate Name: reason`"]
        );
    }
}
