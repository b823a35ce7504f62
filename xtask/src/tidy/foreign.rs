//! Types of other crates in our public signatures tie our versions to theirs. Best effort: this reads text, not types.

use super::Fault;
use super::paths::paths;
use super::source::{Source, group_end};
use super::tree::Tree;

/// Crates whose types users may meet in our API, besides std and our own.
const ALLOWED: &[&str] = &[
    "serde",
    "serde_json",
    "schemars",
    "http",
    "http_body",
    "bytes",
    "tokio",
    "tower_layer",
    "tower_service",
];

/// Crates that one of ours is there for: their types are its API.
const ALLOWED_IN: &[(&str, &str)] = &[("pintle-otel", "opentelemetry")];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for krate in tree.crates.iter().filter(|krate| krate.published) {
        let ours = |name: &str| tree.crates.iter().any(|other| other.name == *name);
        let outside = krate.deps.iter().filter(|dep| !ours(dep)).map(|dep| dep.replace('-', "_"));
        let allowed = |dep: &str| ALLOWED.contains(&dep) || ALLOWED_IN.contains(&(krate.name.as_str(), dep));
        let foreign: Vec<String> = outside.filter(|dep| !allowed(dep)).collect();
        for source in tree.sources.iter().filter(|source| source.krate == krate.name && source.in_src()) {
            look(source, &foreign, &mut faults);
        }
    }
    faults
}

fn look(source: &Source, foreign: &[String], faults: &mut Vec<Fault>) {
    let from = |path: &[&str]| path.len() > 1 && foreign.iter().any(|dep| dep == path[0]);
    let imported: Vec<(&str, String)> = paths(&source.bare)
        .into_iter()
        .filter(|(_, path)| from(path))
        .filter_map(|(_, path)| Some((*path.last()?, path.join("::"))))
        .collect();
    for at in source.words("pub").filter(|at| !source.is_test(*at)) {
        for (_, path) in paths(signature(&source.bare, at)) {
            let whole = imported.iter().find(|(name, _)| path == [*name]).map(|(_, whole)| whole.clone());
            if let Some(name) = from(&path).then(|| path.join("::")).or(whole) {
                let what = format!(
                    "`{name}` in a public signature; wrap it (allowed from outside: {})",
                    ALLOWED.join(", ")
                );
                faults.push(Fault::new(&source.path, source.line(at), what));
            }
        }
    }
}

/// From `pub` to where the item's promise ends: its body is nobody's business. Empty for `pub(crate)`.
fn signature(bare: &str, at: usize) -> &str {
    let item = &bare[at..];
    let after = item["pub".len()..].trim_start();
    if after.starts_with('(') {
        return "";
    }
    let word = after.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let end = match word {
        "use" => item.find(';'),
        // A variant's fields are as public as the enum.
        "enum" => item.find('{').map(|open| group_end(item, open)),
        "fn" | "async" | "struct" | "trait" | "type" | "const" | "static" | "mod" => item.find(['{', ';']),
        _ => item.find('\n'),
    };
    &item[..end.unwrap_or(item.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let mut tree = Tree::of(&[("pintle/src/lib.rs", text)]);
        tree.crates[0].deps = ["base64", "tower-service", "hyper-util"].map(str::to_owned).into();
        check(&tree).iter().map(|fault| fault.line.to_string()).collect()
    }

    #[test]
    fn a_foreign_type_is_found_by_path_and_by_import() {
        let text = "use hyper_util::{rt::Timer, x};\npub fn a(t: Timer) {}\npub fn b() -> base64::Engine {}\n\
                    pub struct C {\n    pub d: Option<Timer>,\n    e: Timer,\n}\npub enum F {\n    G(Timer),\n}\n\
                    pub use base64::Engine;\n";
        assert_eq!(faults(text), ["2", "3", "5", "8", "11"]);
    }

    #[test]
    fn bodies_private_items_and_allowed_crates_are_fine() {
        let text = "use hyper_util::rt::Timer;\npub fn a() { Timer::new() }\npub(crate) fn b(t: Timer) {}\nfn c(t: Timer) {}\n\
                    pub fn d(s: impl tower_service::Service<u8>) {}\n#[cfg(test)]\nmod tests { pub fn e(t: super::Timer) {} }\n";
        assert!(faults(text).is_empty(), "{:?}", faults(text));
    }
}
