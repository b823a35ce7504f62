//! A feature adds items; code that exists only without one changes them. What cannot be called, and names the feature in the compiler's
//! error, is in a module [`missing_feature`](STUBS).

use super::Fault;
use super::source::group_end;
use super::tree::Tree;

/// The module of what a caller needs a feature for.
const STUBS: &str = "missing_feature";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in tree.sources.iter().filter(|source| source.in_src()) {
        for at in source.words("not") {
            let mut inside = source.bare[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_');
            let first = inside.by_ref().find(|word| !matches!(*word, "" | "any" | "all"));
            let called = source.bare[at + 3..].trim_start().starts_with('(');
            if called
                && first == Some("feature")
                && !sets_a_lint(&source.bare, at)
                && !is_of_stubs(&source.bare, at)
            {
                let what =
                    "`not(feature …)`: a feature may only add items; make both ways exist, or the one always";
                faults.push(Fault::new(&source.path, source.line(at), what));
            }
        }
    }
    faults
}

/// Whether this is the condition of `#[cfg_attr(not(feature …), allow(…))]`, which changes no item.
fn sets_a_lint(bare: &str, at: usize) -> bool {
    let after = bare[at..].find('(').map_or("", |open| &bare[group_end(bare, at + open)..]);
    let attribute = after.trim_start().strip_prefix(',').unwrap_or_default().trim_start();
    let lint = ["allow(", "expect("].iter().any(|lint| attribute.starts_with(lint));
    lint && bare[..at].trim_end().ends_with("cfg_attr(")
}

/// Whether this is the condition of the module of stubs, or of what it exports.
fn is_of_stubs(bare: &str, at: usize) -> bool {
    let item = bare[at..].split_once(']').map_or("", |(_, item)| item.trim_start());
    let item = item.split_once(';').map_or("", |(item, _)| item);
    ["mod ", "pub use "]
        .iter()
        .any(|word| item.strip_prefix(word).is_some_and(|name| name.split("::").next() == Some(STUBS)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn code_for_the_absence_of_a_feature_is_found() {
        let file = "#[cfg(feature = \"http\")]\nfn a() {}\n#[cfg(not(feature = \"http\"))]\nfn b() {}\n\
                    #[cfg(all(unix, not(any(feature = \"x\", unix))))]\nfn c() {}\n#[cfg(not(unix))]\nfn d() {}\nfn not(feature: u8) {}\n";
        let found = places(check, &[("pintle/src/lib.rs", file)]);
        assert_eq!(found, ["pintle/src/lib.rs:3", "pintle/src/lib.rs:5", "pintle/src/lib.rs:9"]);
    }

    #[test]
    fn stubs_that_name_a_feature_are_in_a_module_of_their_own() {
        let file = "#[cfg(not(feature = \"http\"))]\nmod missing_feature;\n#[cfg(not(feature = \"http\"))]\n\
                    pub use missing_feature::A;\n#[cfg(not(feature = \"http\"))]\nmod other;";
        assert_eq!(places(check, &[("pintle/src/lib.rs", file)]), ["pintle/src/lib.rs:5"]);
    }

    #[test]
    fn a_lint_may_depend_on_the_absence_of_a_feature() {
        let file = "#![cfg_attr(\n    not(feature = \"http\"),\n    allow(dead_code, reason = \"x\")\n)]\n\
                    #[cfg_attr(not(feature = \"http\"), derive(Debug))]\nstruct A;\n";
        assert_eq!(places(check, &[("pintle/src/lib.rs", file)]), ["pintle/src/lib.rs:5"]);
    }
}
