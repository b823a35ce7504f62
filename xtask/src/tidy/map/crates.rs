//! The table of the crates: each published crate has a row, and what it never imports is what that row states.

use super::{
    super::{Fault, paths::paths, tree::Tree},
    PAGE,
    table::{rows, spans},
};

const HEAD: &str = "| crate | is | never |";

/// A claim of a row about what a crate never imports, with the imports that break it.
struct Claim {
    krate: &'static str,
    never: &'static str,
    /// Paths that are not in its shipped code, `a::b` for all below it too.
    paths: &'static [&'static str],
    /// Crates that it does not depend on; `*` is all of ours.
    crates: &'static [&'static str],
}

const IO: &[&str] = &["std::fs", "std::net", "std::process", "std::thread", "std::time", "tokio", "async"];
const MESSAGES: &[&str] = &[
    "pintle::types::Frame",
    "pintle::types::Message",
    "pintle::types::Request",
    "pintle::types::Response",
    "pintle::server::SessionHandle",
];
const ENGINES: &[&str] = &["pintle::proto::server", "pintle::proto::client", "pintle::proto::inputs"];
const TRANSPORTS: &[&str] = &["pintle::transport", "pintle::server::http", "pintle::client::http"];

const CLAIMS: &[Claim] = &[
    Claim { krate: "pintle-types", never: "I/O, async, eras", paths: IO, crates: &["*"] },
    Claim {
        krate: "pintle-proto",
        never: "a runtime, clocks, threads, randomness",
        paths: IO,
        crates: &["ring", "tokio"],
    },
    // The dates are the rule of `dates.rs`.
    Claim { krate: "pintle", never: "a revision's name or date", paths: &[], crates: &[] },
    Claim { krate: "pintle-macros", never: "other crates of ours", paths: &[], crates: &["*"] },
    Claim { krate: "pintle-uri", never: "the protocol", paths: &[], crates: &["*"] },
    Claim {
        krate: "pintle-tasks",
        never: "transports, the crates below `pintle`",
        paths: TRANSPORTS,
        crates: &["hyper", "pintle-proto", "pintle-types", "pintle-uri"],
    },
    Claim {
        krate: "pintle-relay",
        never: "transports, the crates below `pintle`",
        paths: TRANSPORTS,
        crates: &["hyper", "pintle-proto", "pintle-types", "pintle-uri"],
    },
    Claim { krate: "pintle-yaml", never: "the protocol", paths: &[], crates: &["*"] },
    Claim { krate: "pintle-skills", never: "the engines", paths: ENGINES, crates: &["pintle-proto"] },
    Claim { krate: "pintle-serve", never: "the engines", paths: ENGINES, crates: &["pintle-proto"] },
    Claim { krate: "pintle-openapi", never: "the engines", paths: ENGINES, crates: &["pintle-proto"] },
    Claim {
        krate: "pintle-oauth",
        never: "sessions, JSON-RPC messages",
        paths: MESSAGES,
        crates: &["pintle-proto", "pintle-types"],
    },
    Claim { krate: "pintle-host", never: "the engines", paths: ENGINES, crates: &["pintle-proto"] },
    Claim {
        krate: "pintle-redis",
        never: "JSON-RPC messages",
        paths: MESSAGES,
        crates: &["pintle-proto", "pintle-types"],
    },
    Claim {
        krate: "pintle-sqlite",
        never: "the content of a task, which is sealed",
        paths: &[],
        crates: &["serde", "serde_json", "ring"],
    },
    Claim { krate: "pintle-otel", never: "the engines", paths: ENGINES, crates: &["pintle-proto"] },
    Claim {
        krate: "pintle-testing",
        never: "a dependency of shipped code",
        paths: &[],
        crates: &["pintle-proto"],
    },
    Claim {
        krate: "pintle-cli",
        never: "the engines",
        paths: ENGINES,
        crates: &["pintle-proto", "pintle-types"],
    },
];

/// The crate that no other one ships.
const FOR_TESTS: &str = "pintle-testing";

pub(in super::super) fn check(tree: &Tree) -> Vec<Fault> {
    let rows = rows(tree.text(PAGE), "", HEAD);
    let published = || tree.crates.iter().filter(|krate| krate.published);
    let mut faults = Vec::new();
    for krate in published() {
        let is_row = |row: &&super::table::TableRow<'_>| {
            row.cells.first().is_some_and(|cell| spans(cell).eq([krate.name.as_str()]))
        };
        let Some(row) = rows.iter().find(is_row) else {
            faults.push(Fault::new(
                PAGE,
                0,
                format!("`{}` has no row in the table of crates; add one", krate.name),
            ));
            continue;
        };
        let stated = row.cells.get(2).copied().unwrap_or_default();
        let claim = CLAIMS.iter().find(|claim| claim.krate == krate.name);
        if claim.is_none_or(|claim| claim.never != stated) {
            let what = format!(
                "no check of `{stated}` for `{}`; add it to CLAIMS (xtask/src/tidy/map/crates.rs)",
                krate.name
            );
            faults.push(Fault::new(PAGE, row.line, what));
        }
        if krate.deps.contains(FOR_TESTS) {
            let what = format!("`{}` ships `{FOR_TESTS}`; make it a dev-dependency", krate.name);
            faults.push(Fault::new(format!("{}/Cargo.toml", krate.dir), 0, what));
        }
        faults.extend(claim.into_iter().flat_map(|claim| broken(tree, krate, claim)));
    }
    let unknown = rows.iter().filter(|row| {
        let name = row.cells.first().and_then(|cell| spans(cell).next());
        !published().any(|krate| Some(krate.name.as_str()) == name)
    });
    faults.extend(unknown.map(|row| Fault::new(PAGE, row.line, "there is no such crate; remove the row")));
    faults
}

/// The imports that break a claim.
fn broken(tree: &Tree, krate: &crate::workspace::Crate, claim: &Claim) -> Vec<Fault> {
    let mut faults = Vec::new();
    let what = |import: &str| {
        format!(
            "`{}` never has {}, and imports `{import}`; do without, or correct {PAGE}",
            claim.krate, claim.never
        )
    };
    let is_ours = |name: &str| tree.crates.iter().any(|krate| krate.published && krate.name == name);
    for dep in &krate.deps {
        if claim.crates.iter().any(|never| never == dep || (*never == "*" && is_ours(dep))) {
            faults.push(Fault::new(format!("{}/Cargo.toml", krate.dir), 0, what(dep)));
        }
    }
    for source in tree.sources.iter().filter(|source| source.krate == claim.krate && source.in_src()) {
        for (at, path) in paths(&source.bare) {
            let path = path.join("::");
            let is_never = |never: &&&str| {
                path.strip_prefix(**never).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            if claim.paths.iter().any(|never| is_never(&never)) && !source.is_test(at) {
                faults.push(Fault::new(&source.path, source.line(at), what(&path)));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_claim_and_a_missing_row_are_found() {
        let page = "| crate | is | never |\n|---|---|---|\n| `pintle-skills` | skills | the engines |\n| `pintle-gone` | x | y |\n";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", page),
            (
                "pintle-skills/src/lib.rs",
                "use pintle::{proto::server::Engine, server::Cx};\n#[cfg(test)]\nmod t { use pintle::proto::client; }",
            ),
            ("pintle-host/src/lib.rs", ""),
        ]);
        let found: Vec<String> =
            check(&tree).iter().map(|fault| format!("{}:{}", fault.path, fault.line)).collect();
        assert_eq!(found, ["pintle-skills/src/lib.rs:1", "ARCHITECTURE.md:0", "ARCHITECTURE.md:4"]);
    }
}
