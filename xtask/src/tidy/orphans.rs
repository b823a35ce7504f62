//! A Rust file that no `mod` names is not compiled, and its tests never run.

use super::Fault;
use super::tree::{Tree, module_folder};

/// Below these folders of a crate every file is a module of the folder's root file.
const ROOTS: &[(&str, &[&str])] = &[("src", &["lib", "main"]), ("tests/it", &["main"])];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for krate in &tree.crates {
        for (folder, roots) in ROOTS {
            let folder = format!("{}/{folder}", krate.dir);
            for source in tree.sources.iter().filter(|source| source.path.starts_with(&format!("{folder}/")))
            {
                let stem = source.path.trim_end_matches(".rs");
                let below = &stem[folder.len() + 1..];
                if roots.contains(&below) || below.starts_with("bin/") {
                    continue;
                }
                let module = stem.strip_suffix("/mod").unwrap_or(stem);
                if !declared(tree, module) {
                    let what = "no `mod` line names this file, so it is not compiled; add one or delete it";
                    faults.push(Fault::new(&source.path, 0, what));
                }
            }
        }
    }
    faults
}

/// Whether some file has a `mod` line for the module of this path.
fn declared(tree: &Tree, module: &str) -> bool {
    let Some((folder, name)) = module.rsplit_once('/') else { return false };
    tree.sources.iter().filter(|parent| module_folder(&parent.path) == folder).any(|parent| {
        parent.words(name).any(|at| {
            parent.bare[..at].trim_end().ends_with("mod")
                && parent.bare[at + name.len()..].trim_start().starts_with(';')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn a_file_nobody_names_is_found() {
        let found = places(
            check,
            &[
                ("pintle/src/lib.rs", "mod a;\n// mod lost;\nmod inline { }"),
                ("pintle/src/a/mod.rs", "pub(crate) mod b;"),
                ("pintle/src/a/b.rs", ""),
                ("pintle/src/lost.rs", ""),
                ("pintle/src/bin/tool.rs", ""),
                ("pintle/tests/it/main.rs", "mod eras;"),
                ("pintle/tests/it/eras.rs", "mod deep;"),
                ("pintle/tests/it/eras/deep.rs", ""),
                ("pintle/tests/it/forgotten.rs", ""),
                ("pintle/tests/spec.rs", ""),
            ],
        );
        assert_eq!(found, ["pintle/src/lost.rs:0", "pintle/tests/it/forgotten.rs:0"]);
    }
}
