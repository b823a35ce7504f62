//! Which crate may import which, and what the two lowest may not touch.

use super::Fault;
use super::paths::paths;
use super::tree::Tree;

/// The arrows: a published crate and those of ours that it may import. No row, no import.
const ARROWS: &[(&str, &[&str])] = &[
    ("pintle-types", &[]),
    ("pintle-proto", &["pintle-types"]),
    ("pintle-macros", &[]),
    ("pintle-uri", &[]),
    ("pintle", &["pintle-types", "pintle-proto", "pintle-macros", "pintle-uri"]),
    ("pintle-tasks", &["pintle"]),
    ("pintle-relay", &["pintle", "pintle-tasks"]),
    ("pintle-oauth", &["pintle"]),
    ("pintle-host", &["pintle"]),
    ("pintle-redis", &["pintle", "pintle-tasks"]),
    ("pintle-otel", &["pintle"]),
    ("pintle-sqlite", &["pintle", "pintle-tasks"]),
    ("pintle-serve", &["pintle", "pintle-openapi", "pintle-yaml"]),
    ("pintle-yaml", &[]),
    ("pintle-skills", &["pintle", "pintle-yaml"]),
    ("pintle-openapi", &["pintle", "pintle-oauth", "pintle-yaml"]),
    ("pintle-testing", &["pintle", "pintle-tasks"]),
    (
        "pintle-cli",
        &[
            "pintle",
            "pintle-host",
            "pintle-oauth",
            "pintle-openapi",
            "pintle-redis",
            "pintle-relay",
            "pintle-serve",
            "pintle-tasks",
            "pintle-yaml",
        ],
    ),
];

/// Crates whose every outside dependency is decided here.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("pintle-types", &["memchr", "serde", "serde_json"]),
    ("pintle-proto", &["base64", "http", "memchr", "serde", "serde_json"]),
    ("pintle-macros", &["proc-macro2", "quote", "syn"]),
    ("pintle-uri", &["percent-encoding", "serde", "strsim"]),
];

/// Runtimes and sources of randomness: not even below `pintle-proto`.
const NOT_UNDER_PROTO: &[&str] = &["async-std", "getrandom", "mio", "rand", "rand_core", "smol", "tokio"];

/// Modules of std that reach outside the process. `core::time::Duration` is a plain number and may be used.
const NOT_IN_PROTO: &[&str] = &["time", "thread", "net", "fs", "process"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    edges(tree, &mut faults);
    for held in &tree.under_proto {
        if NOT_UNDER_PROTO.iter().any(|name| held.split(' ').next() == Some(name)) {
            let advice =
                "find what pulls it in with `cargo tree -p pintle-proto -i <crate>` and turn that off";
            faults.push(Fault::new(
                "pintle-proto/Cargo.toml",
                0,
                format!("`{held}` is under pintle-proto; {advice}"),
            ));
        }
    }
    proto_words(tree, &mut faults);
    faults
}

fn edges(tree: &Tree, faults: &mut Vec<Fault>) {
    for krate in tree.crates.iter().filter(|krate| krate.published) {
        let manifest = format!("{}/Cargo.toml", krate.dir);
        let Some((_, arrows)) = ARROWS.iter().find(|(name, _)| *name == krate.name) else {
            let what = format!(
                "`{}` has no row in ARROWS (xtask/src/tidy/layers.rs); add one or `publish = false`",
                krate.name
            );
            faults.push(Fault::new(manifest, 0, what));
            continue;
        };
        let outside = OUTSIDE.iter().find(|(name, _)| *name == krate.name).map(|(_, allowed)| *allowed);
        for dep in &krate.deps {
            let ours = tree.crates.iter().any(|other| other.name == *dep);
            if ours && !arrows.contains(&dep.as_str()) {
                let what =
                    format!("`{}` may not import `{dep}`: move the code to the crate that may", krate.name);
                faults.push(Fault::new(&manifest, 0, what));
            }
            if !ours && outside.is_some_and(|allowed| !allowed.contains(&dep.as_str())) {
                let what = format!(
                    "`{}` may not depend on `{dep}`: do without, or put it one crate up and pass in what it gives",
                    krate.name
                );
                faults.push(Fault::new(&manifest, 0, what));
            }
        }
    }
}

fn proto_words(tree: &Tree, faults: &mut Vec<Fault>) {
    let low = |name: &str| matches!(name, "pintle-types" | "pintle-proto");
    for source in tree.sources.iter().filter(|source| low(&source.krate) && source.in_src()) {
        for (at, path) in paths(&source.bare) {
            let outer = match path.as_slice() {
                ["std", module, ..] => NOT_IN_PROTO.contains(module),
                ["tokio" | "rand" | "getrandom", _, ..] => true,
                _ => false,
            };
            if outer && !source.is_test(at) {
                let what = format!(
                    "`{}` in `{}`: clocks, randomness and I/O are passed in as arguments",
                    path.join("::"),
                    source.krate
                );
                faults.push(Fault::new(&source.path, source.line(at), what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    fn faults_of(name: &str, deps: &[&str]) -> Vec<String> {
        let mut tree = Tree::of(&[
            ("pintle/src/lib.rs", ""),
            ("pintle-types/src/lib.rs", ""),
            ("testkit/src/lib.rs", ""),
        ]);
        for krate in &mut tree.crates {
            krate.published = krate.name != "testkit";
            if krate.name == name {
                krate.deps = deps.iter().map(|dep| (*dep).to_owned()).collect();
            }
        }
        check(&tree).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn imports_follow_the_arrows() {
        assert!(faults_of("pintle", &["pintle-types", "tokio"]).is_empty());
        assert_eq!(faults_of("pintle-types", &["pintle"]).len(), 1);
        assert_eq!(faults_of("pintle", &["testkit"]).len(), 1);
        assert!(faults_of("testkit", &["pintle", "anything"]).is_empty());
    }

    #[test]
    fn the_lowest_crates_take_nothing_new() {
        let faults = faults_of("pintle-types", &["serde", "serde_json", "schemars"]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("`pintle-types` may not depend on `schemars`"), "{faults:?}");
    }

    #[test]
    fn an_unknown_published_crate_needs_a_row() {
        assert_eq!(check(&Tree::of(&[("pintle-new/src/lib.rs", "")])).len(), 1);
    }

    #[test]
    fn a_runtime_below_proto_is_found() {
        let under_proto = ["http v1.5.0", "tokio v1.40.0", "tokio-like v1.0.0"].map(str::to_owned).into();
        let tree = Tree { under_proto, ..Tree::default() };
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn proto_names_no_clock() {
        let file = "//! std::time\nuse std::{fmt, time::Instant};\nuse core::time::Duration;\nfn f() { std::thread::yield_now() }\n\
                    fn g() -> u8 { rand::random() }\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        let found = places(check, &[("pintle-proto/src/lib.rs", file), ("pintle/src/lib.rs", file)]);
        assert_eq!(
            found,
            ["pintle-proto/src/lib.rs:2", "pintle-proto/src/lib.rs:4", "pintle-proto/src/lib.rs:5"]
        );
    }
}
