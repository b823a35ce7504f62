//! The names of code in backticks, on pages and in comments: files, paths of modules, and on the pages for contributors single names
//! too. All must be there.

use std::collections::{BTreeMap, HashSet};

use super::{
    super::{Fault, source::Source, tree::Tree},
    table::spans,
};

/// The pages for contributors. All code that they name must be there.
const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "bench/LEDGER.md"];
/// The endings of files that are checked.
const FILES: &[&str] = &[".rs", ".md", ".toml", ".txt"];
/// Crates and primitive types that are not of the workspace.
const FOREIGN: &[&str] = &[
    "std", "core", "alloc", "tower", "bool", "char", "f32", "f64", "i32", "i64", "str", "u8", "u16", "u32",
    "u64", "usize",
];

pub(in super::super) fn check(tree: &Tree) -> Vec<Fault> {
    let known = Known::new(tree);
    let mut faults = Vec::new();
    for page in PAGES {
        let mut fenced = false;
        for (line, number) in tree.text(page).lines().zip(1..) {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let named: Vec<&str> = match fenced {
                true => line.split_whitespace().filter(|word| word.ends_with(".rs")).collect(),
                false => spans(line).collect(),
            };
            for name in named {
                faults.extend(known.dead_on_page(name).map(|what| Fault::new(*page, number, what)));
            }
        }
    }
    for source in &tree.sources {
        for (name, line) in in_comments(source) {
            faults.extend(known.dead_in_comment(name).map(|what| Fault::new(&source.path, line, what)));
        }
    }
    faults
}

/// The texts in backticks of the comments of a file, without those of examples.
fn in_comments(source: &Source) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for ((raw, code), line) in source.raw.lines().zip(source.code.lines()).zip(1..) {
        // In the code, comments are blank.
        let Some(at) = raw.find("//").filter(|at| code.get(*at..).is_some_and(|rest| rest.trim().is_empty()))
        else {
            fenced = false;
            continue;
        };
        let comment = raw[at..].trim_start_matches(['/', '!']).trim_start();
        if comment.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(spans(comment).map(|name| (name, line)));
        }
    }
    found
}

/// The names that there are.
struct Known<'a> {
    tree: &'a Tree,
    /// The names in each file, strings included.
    names: Vec<HashSet<&'a str>>,
    /// The files of each module, by its name: all below the folder, for one.
    modules: BTreeMap<&'a str, Vec<usize>>,
    foreign: HashSet<String>,
}

impl<'a> Known<'a> {
    fn new(tree: &'a Tree) -> Self {
        let names = tree.sources.iter().map(|source| words(&source.code)).collect();
        let mut modules: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, source) in tree.sources.iter().enumerate() {
            let inside = source.inside.trim_end_matches(".rs");
            let parts = inside.split('/').filter(|part| !matches!(*part, "src" | "mod" | "lib" | "main"));
            for part in parts.chain([source.krate.as_str()]) {
                modules.entry(part).or_default().push(at);
            }
            let inline = source.bare.match_indices("mod ").map(|(at, _)| &source.bare[at + 4..]);
            for name in inline.filter_map(|rest| words_of(rest).next()) {
                modules.entry(name).or_default().push(at);
            }
        }
        let ours = |name: &str| tree.crates.iter().any(|krate| krate.name == name);
        let deps = tree.crates.iter().flat_map(|krate| &krate.deps).filter(|dep| !ours(dep));
        let foreign = deps.map(|dep| dep.replace('-', "_"));
        let foreign = foreign.chain(FOREIGN.iter().map(|name| (*name).to_owned())).collect();
        Self { tree, names, modules, foreign }
    }

    /// Returns why a text on a page for contributors names nothing.
    fn dead_on_page(&self, text: &str) -> Option<String> {
        if let Some(verb) = text.strip_prefix("cargo xtask ").and_then(|rest| rest.split(' ').next()) {
            let quoted = format!("\"{verb}\"");
            let is_known = self
                .tree
                .sources
                .iter()
                .any(|source| source.krate == "xtask" && source.code.contains(&quoted));
            return (!is_known).then(|| format!("there is no `cargo xtask {verb}`; correct or remove it"));
        }
        if is_path(text) {
            let is_known = self.is_file(text) || (!is_file_name(text) && self.is_text(text));
            return (!is_known).then(|| format!("there is no `{text}`; correct or remove it"));
        }
        if text.contains("::") {
            return self.dead_path(text);
        }
        let name = text.trim_end_matches("()").trim_end_matches('!');
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_known = || {
            self.names.iter().any(|names| names.contains(name))
                || self.modules.contains_key(name)
                || self.tree.paths.iter().any(|path| path.split('/').any(|part| part == name))
                || self
                    .tree
                    .texts
                    .iter()
                    .any(|(path, text)| path.ends_with("Cargo.toml") && text.contains(name))
        };
        (is_name && !is_known()).then(|| format!("there is no `{name}`; correct or remove it"))
    }

    /// Returns why a text in a comment names nothing: comments also name members of messages, commands and files of users.
    fn dead_in_comment(&self, text: &str) -> Option<String> {
        let is_ours = text.split_once('/').is_some_and(|(top, _)| {
            self.tree.crates.iter().any(|krate| krate.dir == top) || matches!(top, "docs" | "loom" | "fuzz")
        });
        if is_path(text) && (text.ends_with(".rs") || is_ours) {
            return (!self.is_file(text)).then(|| format!("there is no `{text}`; correct or remove it"));
        }
        if text.contains("::") { self.dead_path(text) } else { None }
    }

    /// Whether this is a file or folder, or the end of the path of one.
    fn is_file(&self, text: &str) -> bool {
        let text = text.trim_end_matches('/');
        let ends = format!("/{text}");
        let is_folder =
            || self.tree.paths.iter().any(|path| format!("/{path}").contains(&format!("{ends}/")));
        self.tree.paths.iter().any(|path| path == text || path.ends_with(&ends)) || is_folder()
    }

    /// Whether code has this in a string, such as the name of a method.
    fn is_text(&self, text: &str) -> bool {
        self.tree.sources.iter().any(|source| source.code.contains(text))
    }

    /// Returns why `a::b` names nothing.
    fn dead_path(&self, text: &str) -> Option<String> {
        let path = text.split(['<', '(', '!', ' ']).next().unwrap_or_default();
        let parts: Vec<&str> =
            path.split("::").filter(|part| !matches!(*part, "crate" | "self" | "super" | "$crate")).collect();
        let is_path = parts.len() > 1
            && parts
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        if !is_path || self.foreign.contains(parts[0]) {
            return None;
        }
        let dead = parts.windows(2).find(|pair| !self.has(pair[0], pair[1]))?;
        Some(format!("there is no `{}` in `{}`; correct or remove `{text}`", dead[1], dead[0]))
    }

    /// Whether a module or a type has an item of this name, as far as a text shows it.
    fn has(&self, holder: &str, item: &str) -> bool {
        let dashed = holder.replace('_', "-");
        if let Some(files) = self.modules.get(holder).or_else(|| self.modules.get(dashed.as_str())) {
            if files.iter().any(|at| self.names[*at].contains(item)) {
                return true;
            }
            return self.modules.contains_key(item);
        }
        let holds = |names: &&HashSet<&str>| names.contains(holder);
        let mut holders = self.names.iter().filter(holds).peekable();
        // A type of another crate has items that are not here.
        let is_ours = || {
            let definitions =
                ["struct ", "enum ", "trait ", "type ", "union "].map(|word| format!("{word}{holder}"));
            self.tree
                .sources
                .iter()
                .any(|source| definitions.iter().any(|text| source.bare.contains(text.as_str())))
        };
        match holders.peek() {
            None => false,
            Some(_) => holders.any(|names| names.contains(item)) || !is_ours(),
        }
    }
}

fn is_path(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    text.bytes().all(fits) && !text.starts_with(['.', '/', '-']) && (text.contains('/') || is_file_name(text))
}

fn is_file_name(text: &str) -> bool {
    FILES.iter().any(|end| text.ends_with(end) && text.len() > end.len())
}

/// The names in a text, each once.
fn words(text: &str) -> HashSet<&str> {
    words_of(text).collect()
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::places;
    use super::*;

    const CODE: &str =
        "mod gate;\nstruct Cx;\nimpl Cx { fn facts() {} }\nconst CALL: &str = \"tools/call\";\n";

    #[test]
    fn a_page_names_what_is_there() {
        let page = "`gate.rs` `src/gate.rs` `Cx` `Cx::facts` `tools/call` `gate::admit` `std::fs::gone` `pintle/src`\n\
                    `gone.rs`\n`Gone`\n`Cx::gone`\n`gate::gone`\n`gone::admit`\n`gone/call`\n```\n  gone.rs\n  gone\n```\n";
        let found = places(
            check,
            &[
                ("ARCHITECTURE.md", page),
                ("pintle/src/lib.rs", CODE),
                ("pintle/src/gate.rs", "fn admit() {}"),
            ],
        );
        assert_eq!(found, [2, 3, 4, 5, 6, 7, 9].map(|line| format!("ARCHITECTURE.md:{line}")));
    }

    #[test]
    fn a_comment_names_files_and_paths_that_are_there() {
        let gate = "//! See `lib.rs`, `gone.rs`.\n/// `Cx::facts`, `Cx::gone`, `notes/gone.txt`, `Gone`\n/// ```\n/// `gone::gone`\n/// ```\n\
                    fn admit() {} // `gate::gone`\nfn f() { g(\"`gate::none`\") }\n";
        let found = places(check, &[("pintle/src/lib.rs", CODE), ("pintle/src/gate.rs", gate)]);
        assert_eq!(found, ["pintle/src/gate.rs:1", "pintle/src/gate.rs:2", "pintle/src/gate.rs:6"]);
    }
}
