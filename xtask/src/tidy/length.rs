//! A file that passes 600 lines usually holds two ideas, and a line of prose past 120 characters makes differences hard to read.

use super::Fault;
use super::tree::Tree;

const LIMIT: usize = 600;
/// The limit of characters of a line of prose.
const WIDTH: usize = 120;
/// The pages that are wrapped, besides those of the guide.
const WRAPPED: &[&str] =
    &["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "ROUGH_EDGES.md", "SECURITY.md"];

/// Files that may be longer, and why.
const LONGER: &[(&str, &str)] = &[];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    too_long(tree, LONGER)
}

fn too_long(tree: &Tree, longer: &[(&str, &str)]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in &tree.sources {
        let lines = source.raw.lines().count();
        if lines > LIMIT && !longer.iter().any(|(path, _)| *path == source.path) {
            let what = format!(
                "{lines} lines, at most {LIMIT}: split it by its nouns, or give a reason in xtask/src/tidy/length.rs"
            );
            faults.push(Fault::new(&source.path, 0, what));
        }
    }
    for (path, _) in longer.iter().filter(|(path, _)| !tree.paths.contains(*path)) {
        faults.push(Fault::new(*path, 0, "listed in xtask/src/tidy/length.rs and gone; remove its row"));
    }
    faults
}

/// Lines of prose that are too wide. Tables, headings and examples are as wide as they have to be.
pub(super) fn check_width(tree: &Tree) -> Vec<Fault> {
    let is_wrapped = |path: &str| {
        let page = path.strip_prefix("docs/").filter(|page| !page.contains('/') && page.ends_with(".md"));
        page.is_some() || WRAPPED.contains(&path)
    };
    let mut faults = Vec::new();
    for (path, text) in tree.texts.iter().filter(|(path, _)| is_wrapped(path)) {
        let mut fenced = false;
        for (line, number) in text.lines().zip(1..) {
            let start = line.trim_start();
            if start.starts_with("```") && !start.trim_start_matches('`').contains('`') {
                fenced = !fenced;
            }
            let is_prose = !fenced && !start.starts_with(['|', '#']);
            if is_prose && line.chars().count() > WIDTH {
                faults.push(Fault::new(
                    path,
                    number,
                    format!("more than {WIDTH} characters; wrap the paragraph"),
                ));
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
    fn prose_is_wrapped_and_tables_are_not() {
        let long = "word ".repeat(30);
        let page = format!("{long}\n| {long} |\n# {long}\n```text\n{long}\n```\n- {long}\n");
        let found = places(
            check_width,
            &[("docs/a.md", &page), ("docs/api/b.md", &page), ("bench/LEDGER.md", &page)],
        );
        assert_eq!(found, ["docs/a.md:1", "docs/a.md:7"]);
    }

    fn faults(lines: usize, longer: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(&[("pintle/src/lib.rs", &"\n".repeat(lines))]);
        too_long(&tree, longer).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        assert!(faults(600, &[]).is_empty());
        assert!(faults(601, &[])[0].contains("601 lines"));
        assert!(faults(601, &[("pintle/src/lib.rs", "one table")]).is_empty());
    }

    #[test]
    fn a_reason_without_its_file_is_removed() {
        assert!(faults(1, &[("pintle/src/gone.rs", "one table")])[0].contains("remove its row"));
    }
}
