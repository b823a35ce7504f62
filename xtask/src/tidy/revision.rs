//! `Revision` cannot be compared by age: "at least X" must not be writable.

use super::Fault;
use super::source::Source;
use super::tree::Tree;

const ADVICE: &str = "ask the dialect table for the behaviour instead of comparing ages";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in tree.sources.iter().filter(|source| source.krate == "pintle-proto" && source.in_src()) {
        for at in source.words("Revision") {
            if let Some(what) = broken(source, at) {
                faults.push(Fault::new(&source.path, source.line(at), format!("{what}: {ADVICE}")));
            }
        }
    }
    faults
}

/// The fault of the item that names `Revision` at `at`, if it is its definition or an impl for it.
fn broken(source: &Source, at: usize) -> Option<String> {
    let bare = &source.bare;
    let start = bare[..at].rfind([';', '}']).map_or(0, |end| end + 1);
    let head = &bare[start..at];
    let ordering =
        head.split(|c: char| !c.is_alphanumeric()).find(|word| matches!(*word, "Ord" | "PartialOrd"));
    let head = head.trim_end();
    let defines = head.ends_with("struct") || head.ends_with("enum");
    if (defines || head.ends_with(" for")) && ordering.is_some() {
        return Some(format!("`Revision` implements `{}`", ordering.unwrap_or_default()));
    }
    if head.ends_with("pub enum") {
        return Some("`Revision` is a public enum, so its variants can be matched".to_owned());
    }
    let body = bare[at + "Revision".len()..].trim_start();
    let end = body.find([')', '}', ';']).unwrap_or(body.len());
    (head.ends_with("struct")
        && body[..end].split_whitespace().any(|word| word.trim_start_matches(['(', '{']) == "pub"))
    .then(|| "`Revision` has a public field".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    fn caught(text: &str) -> bool {
        !places(check, &[("pintle-proto/src/revision/mod.rs", text)]).is_empty()
    }

    #[test]
    fn order_is_refused() {
        assert!(caught("#[derive(Clone, PartialEq, PartialOrd)]\npub struct Revision(u8);"));
        assert!(caught("struct Revision(u8);\nimpl Ord for Revision { }"));
        assert!(caught("impl PartialOrd<u8> for Revision { }"));
        assert!(caught("pub enum Revision { A }"));
        assert!(caught("pub struct Revision(pub u8);"));
        assert!(caught("pub struct Revision {\n    pub name: u8,\n}"));
    }

    #[test]
    fn equality_is_fine() {
        assert!(!caught(
            "#[derive(Ord)] struct Row;\n#[derive(Clone, Eq, PartialEq)]\npub struct Revision(&'static Row);"
        ));
        assert!(!caught("impl fmt::Display for Revision { }\npub fn f(a: Revision) -> Ordering {}"));
        assert!(!caught("pub(crate) enum Revision2 { A }"));
    }
}
