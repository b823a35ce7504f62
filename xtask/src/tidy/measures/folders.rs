//! The number of Rust files directly in one folder of a crate's `src`, `tests` or `examples`.

use std::collections::BTreeMap;

use super::super::Fault;
use super::super::tree::Tree;
use super::Measured;

/// Folders with more files than this are listed.
const LISTED: usize = 20;

pub(super) fn measure(tree: &Tree) -> Measured {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in &tree.sources {
        if ["src/", "tests/", "examples/"].iter().any(|folder| source.inside.starts_with(folder)) {
            let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            *counts.entry(folder).or_default() += 1;
        }
    }
    let mut wide: Vec<_> = counts.iter().filter(|(_, count)| **count > LISTED).collect();
    wide.sort_by_key(|(folder, count)| (std::cmp::Reverse(**count), **folder));
    Measured {
        value: counts.values().max().copied().unwrap_or(0),
        offenders: wide
            .iter()
            .map(|(folder, count)| Fault::new(**folder, 0, format!("{count} files")))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_directly_in_a_folder_count() {
        let wide = ["pintle/src/wide", "pintle/examples"];
        let files: Vec<String> =
            wide.iter().flat_map(|folder| (0..21).map(move |n| format!("{folder}/f{n}.rs"))).collect();
        let mut files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "")).collect();
        files.extend([
            ("pintle/src/wide/deep/a.rs", ""),
            ("pintle/tests/it/a.rs", ""),
            ("pintle/examples/deep/a.rs", ""),
        ]);
        let measured = measure(&Tree::of(&files));
        assert_eq!(measured.value, 21);
        let listed: Vec<String> = measured.offenders.iter().map(Fault::to_string).collect();
        assert_eq!(listed, ["pintle/examples: 21 files", "pintle/src/wide: 21 files"]);
    }
}
