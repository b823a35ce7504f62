//! A file that passes 600 lines usually holds two ideas.

use super::Fault;
use super::tree::Tree;

const LIMIT: usize = 600;

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

#[cfg(test)]
mod tests {
    use super::*;

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
