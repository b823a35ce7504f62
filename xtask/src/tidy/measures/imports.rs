//! The imports of a crate, from file to file.

use super::super::paths::paths;
use super::super::source::Source;
use super::super::tree::Tree;
use super::modules::{Inline, ModulePath, Modules, imports, path_of};

/// One path in shipped code that names an item of another file.
#[derive(Debug)]
pub(in super::super) struct Crossing<'a> {
    pub(super) source: &'a Source,
    pub(super) at: usize,
    /// As it is written.
    pub(super) path: String,
    pub(super) from: Place<'a>,
    /// The file that defines the item.
    pub(super) to: Place<'a>,
}

impl<'a> Crossing<'a> {
    /// The folder that imports.
    pub(in super::super) fn importer(&self) -> &[&'a str] {
        &self.from.folder
    }

    /// The folder that is imported.
    pub(in super::super) fn imported(&self) -> &[&'a str] {
        &self.to.folder
    }
}

/// A file of a crate: its folder, and the file in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place<'a> {
    pub(super) folder: ModulePath<'a>,
    /// `mod.rs`, or the file's name without its ending.
    pub(super) file: &'a str,
}

/// The crossings of each published crate, with the crate's folder. A `pub use` is none: it only gives an item another name.
pub(in super::super) fn crossings(tree: &Tree) -> Vec<(&str, Vec<Crossing<'_>>)> {
    let published = tree.crates.iter().filter(|krate| krate.published);
    published.map(|krate| (krate.dir.as_str(), of_crate(tree, &krate.name))).collect()
}

fn of_crate<'a>(tree: &'a Tree, krate: &str) -> Vec<Crossing<'a>> {
    let shipped = |source: &&Source| {
        source.krate == krate && source.in_src() && !source.all_test && !source.inside.starts_with("src/bin/")
    };
    let sources: Vec<&Source> = tree.sources.iter().filter(shipped).collect();
    let modules = Modules::new(&sources);
    let place = |module: &[&'a str]| {
        let folder = modules.folder(module);
        let file = if folder.len() == module.len() { "mod.rs" } else { module[module.len() - 1] };
        Place { folder, file }
    };
    let mut found = Vec::new();
    for source in &sources {
        let (file, from) = (Inline::new(source), place(&path_of(source)));
        let exports: Vec<_> = imports(source).into_iter().filter(|import| import.exported).collect();
        for (at, path) in paths(&source.bare) {
            // `pub(in crate::server)` imports nothing.
            let visibility =
                source.bare[..at].rsplit_once('(').is_some_and(|(_, inner)| inner.starts_with("in "));
            // The body of an exported macro is expanded elsewhere.
            let before = path.iter().rev().skip(1).fold(&source.bare[..at], |before, part| {
                before.strip_suffix("::").and_then(|before| before.strip_suffix(part)).unwrap_or_default()
            });
            let in_macro = before.ends_with('$');
            if path.len() < 2
                || visibility
                || in_macro
                || source.is_test(at)
                || exports.iter().any(|import| import.range.contains(&at))
            {
                continue;
            }
            let Some(absolute) = modules.absolute(&file.module_at(at), &path) else { continue };
            let to = place(&modules.definer(&absolute));
            if from != to {
                found.push(Crossing { source, at, path: path.join("::"), from: from.clone(), to });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crosses_is_found_and_what_stays_is_not() {
        let tree = Tree::of(&[
            ("pintle/src/lib.rs", "mod a;\nmod b;\npub use b::B;"),
            ("pintle/src/a/mod.rs", "mod c;\npub(crate) struct A;\nfn f() { self::f() }"),
            (
                "pintle/src/a/c.rs",
                "use super::A;\nfn f() -> crate::B { std::mem::take(x) }\npub(in crate::a) struct C;\nmacro_rules! m { () => { $crate::B } }\n#[cfg(test)]\nmod t { use crate::b::B; }",
            ),
            ("pintle/src/b/mod.rs", "mod d;\npub struct B;"),
            ("pintle/src/b/d.rs", ""),
        ]);
        let shown = |place: &Place<'_>| format!("{}/{}", place.folder.join("/"), place.file);
        let found: Vec<String> = crossings(&tree)
            .into_iter()
            .flat_map(|(_, crossings)| crossings)
            .map(|one| format!("{} {}>{}", one.path, shown(&one.from), shown(&one.to)))
            .collect();
        assert_eq!(found, ["super::A a/c>a/mod.rs", "crate::B a/c>b/mod.rs"]);
    }
}
