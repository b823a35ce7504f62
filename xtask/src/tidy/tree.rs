//! Everything that the rules look at, read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::source::Source;
use crate::cargo::Failure;
use crate::workspace::{Crate, crates, pulled_in, root};

/// The workspace as text, and what cargo says about its crates.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) crates: Vec<Crate>,
    pub(super) sources: Vec<Source>,
    /// Every text file, Rust included: path from the root, content.
    pub(super) texts: Vec<(String, String)>,
    /// Every file and folder, from the root.
    pub(super) paths: BTreeSet<String>,
    /// `name version` of all that `pintle-proto` pulls in.
    pub(super) under_proto: BTreeSet<String>,
    /// The specification's digest, where there is one: it is no part of the workspace.
    pub(super) digest: Option<String>,
}

const SKIPPED: &[&str] = &["target", "node_modules", "corpus", "artifacts", "__pycache__", ".git", ".venv"];
const TEXT: &[&str] =
    &["json", "jsonl", "js", "lock", "md", "mjs", "py", "rs", "sh", "toml", "ts", "txt", "yaml", "yml"];

impl Tree {
    pub(super) fn load() -> Result<Self, Failure> {
        let mut tree = Self { crates: crates()?, ..Self::default() };
        if tree.crates.iter().any(|krate| krate.name == "pintle-proto") {
            tree.under_proto = pulled_in("pintle-proto", "--all-features")?;
        }
        tree.walk(&root(), "").map_err(|error| Failure::new(error, "cargo xtask tidy"))?;
        tree.read_sources();
        let beside = || root().join("../shared/reference/spec-digest.md");
        let digest = std::env::var_os("PINTLE_DIGEST").map_or_else(beside, PathBuf::from);
        tree.digest = fs::read_to_string(digest).ok();
        Ok(tree)
    }

    fn walk(&mut self, dir: &Path, below: &str) -> Result<(), String> {
        let broken = |error| format!("cannot read `{}`: {error}", dir.display());
        let entries = fs::read_dir(dir).map_err(broken)?.collect::<Result<Vec<_>, _>>().map_err(broken)?;
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            let kind = entry.file_type().map_err(broken)?;
            if kind.is_dir() {
                self.walk(&entry.path(), &path)?;
            } else if kind.is_file() && is_text(&path) {
                let bytes = fs::read(entry.path()).map_err(broken)?;
                // Bad UTF-8 is legal in test data and cannot hold what the rules look for.
                if let Ok(text) = String::from_utf8(bytes) {
                    self.texts.push((path.clone(), text));
                }
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// Rust files become sources; then those that are test modules in files of their own are marked.
    fn read_sources(&mut self) {
        self.texts.sort();
        for (path, text) in self.texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
            let holders = self.crates.iter().filter(|krate| path.starts_with(&format!("{}/", krate.dir)));
            let owner = holders.max_by_key(|krate| krate.dir.len());
            let (name, dir) = owner.map_or(("", ""), |krate| (krate.name.as_str(), krate.dir.as_str()));
            let inside = path.strip_prefix(dir).unwrap_or(path).trim_start_matches('/');
            self.sources.push(Source::new(name, dir, inside, text.clone()));
        }
        let declared = |source: &Source| {
            let folder = module_folder(&source.path);
            source.test_modules().into_iter().map(move |name| format!("{folder}/{name}")).collect::<Vec<_>>()
        };
        let test_modules: Vec<String> = self.sources.iter().flat_map(declared).collect();
        for source in &mut self.sources {
            let stem = source.path.trim_end_matches(".rs");
            source.all_test |=
                test_modules.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
        }
    }

    /// Sources of crates that users get: the rules about our API and layers hold there.
    pub(super) fn published(&self) -> impl Iterator<Item = &Source> {
        let shipped = |name: &str| self.crates.iter().any(|krate| krate.published && krate.name == name);
        self.sources.iter().filter(move |source| shipped(&source.krate))
    }

    /// The text of a file, or nothing if there is no such file.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.iter().find(|(own, _)| own == path).map_or("", |(_, text)| text)
    }

    /// A workspace of these files; each top folder is a published crate of that name.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let top = path.split_once('/').map_or("", |(top, _)| top);
            if !top.is_empty() && !tree.crates.iter().any(|krate| krate.name == top) {
                let krate = Crate { name: top.into(), dir: top.into(), published: true, ..Crate::default() };
                tree.crates.push(krate);
            }
            tree.paths.insert((*path).to_owned());
            tree.texts.push(((*path).to_owned(), (*text).to_owned()));
        }
        tree.read_sources();
        tree
    }
}

/// The folder in which a file's own modules live: its own name without the ending, or for a root such as `mod.rs` the folder it is in.
pub(super) fn module_folder(path: &str) -> String {
    let stem = path.trim_end_matches(".rs");
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let is_root = matches!(name, "mod" | "lib" | "main");
    if is_root { folder.to_owned() } else { stem.to_owned() }
}

fn is_text(path: &str) -> bool {
    path == ".ci/run" || path.rsplit_once('.').is_some_and(|(_, ext)| TEXT.contains(&ext))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_module_in_its_own_file_is_test_code() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod checks;\n"),
            ("a/src/b.rs", "#[cfg(test)]\nmod tests;\n"),
            ("a/src/b/tests.rs", ""),
            ("a/src/checks/deep.rs", ""),
            ("a/tests/it/main.rs", ""),
        ]);
        let tests: Vec<&str> =
            tree.sources.iter().filter(|source| source.all_test).map(|source| source.path.as_str()).collect();
        assert_eq!(tests, ["a/src/b/tests.rs", "a/src/checks/deep.rs", "a/tests/it/main.rs"]);
    }
}
