//! The modules of one crate, and the module in which the item of a path is defined.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::super::source::{Source, group_end, is_name};
use super::super::tree::module_folder;

/// Names from the crate's root down.
pub(super) type ModulePath<'a> = Vec<&'a str>;

/// Re-exports are followed this far; a longer chain is a loop.
const HOPS: usize = 16;

/// The shipped modules of a crate and the names that their `use` lines bring into scope.
#[derive(Debug)]
pub(super) struct Modules<'a> {
    paths: BTreeSet<ModulePath<'a>>,
    scopes: BTreeMap<(ModulePath<'a>, &'a str), ModulePath<'a>>,
}

impl<'a> Modules<'a> {
    pub(super) fn new(sources: &[&'a Source]) -> Self {
        let mut modules = Self { paths: BTreeSet::new(), scopes: BTreeMap::new() };
        for source in sources {
            let path = path_of(source);
            modules.paths.extend((0..=path.len()).map(|end| path[..end].to_vec()));
        }
        for source in sources {
            let file = Inline::new(source);
            for import in imports(source) {
                let module = file.module_at(import.range.start);
                if let Some(path) = modules.absolute(&module, &import.path) {
                    modules.scopes.insert((module, import.name), path);
                }
            }
        }
        modules
    }

    /// A path written in `module`, from the crate's root; `None` if it leads out of the crate or to a local name.
    pub(super) fn absolute(&self, module: &[&'a str], path: &[&'a str]) -> Option<ModulePath<'a>> {
        let (mut base, mut rest) = (module.to_vec(), path);
        match path.first()? {
            &"crate" => {
                base.clear();
                rest = &path[1..];
            }
            &"self" => rest = &path[1..],
            &"super" => {}
            first => {
                base.push(first);
                return self.paths.contains(&base).then(|| [module, path].concat());
            }
        }
        while let ["super", above @ ..] = rest {
            base.pop()?;
            rest = above;
        }
        base.extend(rest.iter().filter(|part| **part != "self"));
        Some(base)
    }

    /// The module that defines what an absolute path names, with re-exports followed.
    pub(super) fn definer(&self, path: &[&'a str]) -> ModulePath<'a> {
        self.follow(path, HOPS)
    }

    fn follow(&self, path: &[&'a str], hops: usize) -> ModulePath<'a> {
        let mut module = Vec::new();
        for (index, part) in path.iter().enumerate() {
            let below = [&module[..], &[*part]].concat();
            if self.paths.contains(&below) {
                module = below;
            } else if let Some(target) = self.scopes.get(&(module.clone(), *part))
                && hops > 0
            {
                return self.follow(&[target, &path[index + 1..]].concat(), hops - 1);
            } else {
                break;
            }
        }
        module
    }

    /// The folder that holds a module's file: its own, if it has modules below it.
    pub(super) fn folder(&self, module: &[&'a str]) -> ModulePath<'a> {
        let mut below = self.paths.range(module.to_vec()..).skip(1);
        let has_modules = below.next().is_some_and(|next| next.starts_with(module));
        let end = if has_modules { module.len() } else { module.len().saturating_sub(1) };
        module[..end].to_vec()
    }
}

/// One name that a `use` line brings into scope.
#[derive(Debug)]
pub(super) struct Import<'a> {
    pub(super) path: ModulePath<'a>,
    name: &'a str,
    /// The whole `use` line.
    pub(super) range: Range<usize>,
    /// Whether the line begins with `pub` or `pub(…)`.
    pub(super) exported: bool,
}

/// The names that the `use` lines of a file bring into scope, outside its tests.
pub(super) fn imports(source: &Source) -> Vec<Import<'_>> {
    let bare = source.bare.as_str();
    let mut found = Vec::new();
    for at in source.words("use").filter(|at| !source.is_test(*at)) {
        let end = bare[at..].find(';').map_or(bare.len(), |end| at + end);
        let line = bare[..at].rfind([';', '}', '{', ']']).map_or(0, |before| before + 1);
        let exported = bare[line..at].trim_start().starts_with("pub");
        let mut items = Vec::new();
        tree(&bare[at + "use".len()..end], &[], &mut items);
        found.extend(items.into_iter().map(|(path, name)| Import { path, name, range: at..end, exported }));
    }
    found
}

/// Writes out one tree of a `use` line: `a::{b, c as d}`.
fn tree<'a>(text: &'a str, before: &[&'a str], found: &mut Vec<(ModulePath<'a>, &'a str)>) {
    let text = text.trim().trim_start_matches("::");
    if let Some(open) = text.find('{') {
        let mut path = before.to_vec();
        path.extend(text[..open].split("::").map(str::trim).filter(|part| !part.is_empty()));
        let (mut depth, mut start) = (0, open + 1);
        for (at, byte) in text.bytes().enumerate().skip(open + 1) {
            match byte {
                b'{' => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                b'}' | b',' if depth == 0 => {
                    tree(&text[start..at], &path, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    if text.is_empty() || text.ends_with('*') {
        return;
    }
    let (path, alias) =
        text.split_once(" as ").map_or((text, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = [before, &path.split("::").map(str::trim).collect::<Vec<_>>()].concat();
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let name = alias.or(path.last().copied()).unwrap_or_default();
    found.push((path, name));
}

/// The module of a file: `server`, `stream` for `src/server/stream/mod.rs`, and `server`, `seal` for `src/server/seal.rs`.
pub(super) fn path_of(source: &Source) -> ModulePath<'_> {
    let folder = module_folder(&source.inside).len();
    source.inside[..folder].split('/').skip(1).collect()
}

/// A file with the modules that are written out in it.
#[derive(Debug)]
pub(super) struct Inline<'a> {
    path: ModulePath<'a>,
    /// Outer ones first.
    bodies: Vec<(Range<usize>, &'a str)>,
}

impl<'a> Inline<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        let bare = source.bare.as_str();
        let mut bodies = Vec::new();
        for at in source.words("mod").filter(|at| !source.is_test(*at)) {
            let after = bare[at + "mod".len()..].trim_start();
            let start = bare.len() - after.len();
            let length = after.bytes().take_while(|byte| is_name(*byte)).count();
            if length > 0 && after[length..].trim_start().starts_with('{') {
                let end = group_end(bare, start + length + after[length..].find('{').unwrap_or(0));
                bodies.push((start..end, &bare[start..start + length]));
            }
        }
        Self { path: path_of(source), bodies }
    }

    /// The module at an offset: the file's own, or one that is written out in it.
    pub(super) fn module_at(&self, at: usize) -> ModulePath<'a> {
        let inner = self.bodies.iter().filter(|(range, _)| range.contains(&at)).map(|(_, name)| *name);
        self.path.iter().copied().chain(inner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tree::Tree;
    use super::*;

    fn tree_of() -> Tree {
        Tree::of(&[
            ("pintle/src/lib.rs", "pub mod server;\npub use server::Tool;\nmod error;"),
            ("pintle/src/error.rs", ""),
            (
                "pintle/src/server/mod.rs",
                "mod call;\nmod catalogue;\npub use self::catalogue::tool::{Tool, Old as New};",
            ),
            (
                "pintle/src/server/call.rs",
                "mod sealed {\n use super::X;\n}\n#[cfg(test)]\nmod tests { use crate::error::E; }",
            ),
            ("pintle/src/server/catalogue/mod.rs", "pub(crate) mod tool;"),
            ("pintle/src/server/catalogue/tool.rs", ""),
        ])
    }

    fn written(path: &str) -> Vec<&str> {
        path.split("::").filter(|part| !part.is_empty()).collect()
    }

    #[test]
    fn re_exports_are_followed_to_the_definition() {
        let tree = tree_of();
        let modules = Modules::new(&tree.sources.iter().collect::<Vec<_>>());
        let definer = |path: &'static str| modules.definer(&written(path)).join("::");
        assert_eq!(definer("Tool"), "server::catalogue::tool");
        assert_eq!(definer("server::New"), "server::catalogue::tool");
        assert_eq!(definer("server::Server"), "server");
        assert_eq!(definer("error::Error::new"), "error");
    }

    #[test]
    fn paths_are_read_from_where_they_stand() {
        let tree = tree_of();
        let modules = Modules::new(&tree.sources.iter().collect::<Vec<_>>());
        let absolute = |module: &'static str, path: &'static str| {
            modules.absolute(&written(module), &written(path)).map(|path| path.join("::"))
        };
        assert_eq!(
            absolute("server::call", "super::catalogue::tool::Tool").as_deref(),
            Some("server::catalogue::tool::Tool")
        );
        assert_eq!(absolute("server::call", "super::super::Tool").as_deref(), Some("Tool"));
        assert_eq!(
            absolute("server", "catalogue::tool::Tool").as_deref(),
            Some("server::catalogue::tool::Tool")
        );
        assert_eq!(absolute("server", "self::call").as_deref(), Some("server::call"));
        assert_eq!(absolute("server", "tokio::sync::mpsc"), None);
    }

    #[test]
    fn a_module_written_out_in_a_file_is_one_below_it() {
        let tree = tree_of();
        let call = tree.sources.iter().find(|source| source.path.ends_with("call.rs")).unwrap();
        let found = imports(call);
        assert_eq!(found.len(), 1);
        assert_eq!(Inline::new(call).module_at(found[0].range.start), ["server", "call", "sealed"]);
    }

    #[test]
    fn a_folder_is_that_of_the_modules_below_or_beside() {
        let tree = tree_of();
        let modules = Modules::new(&tree.sources.iter().collect::<Vec<_>>());
        let folder = |path: &'static str| modules.folder(&written(path)).join("/");
        assert_eq!(folder("server::catalogue"), "server/catalogue");
        assert_eq!(folder("server::catalogue::tool"), "server/catalogue");
        assert_eq!(folder("error"), "");
        assert_eq!(folder(""), "");
    }
}
