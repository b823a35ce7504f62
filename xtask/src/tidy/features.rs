//! A feature adds items; code that exists only without one changes them.

use super::Fault;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in tree.sources.iter().filter(|source| source.in_src()) {
        for at in source.words("not") {
            let mut inside = source.bare[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_');
            let first = inside.by_ref().find(|word| !matches!(*word, "" | "any" | "all"));
            let called = source.bare[at + 3..].trim_start().starts_with('(');
            if called && first == Some("feature") {
                let what =
                    "`not(feature …)`: a feature may only add items; make both ways exist, or the one always";
                faults.push(Fault::new(&source.path, source.line(at), what));
            }
        }
    }
    faults
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
}
