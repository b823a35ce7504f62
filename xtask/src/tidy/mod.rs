//! `cargo xtask tidy`: the rules that neither rustc nor clippy keep. `ARCHITECTURE.md` gives their reasons.

mod capabilities;
mod coverage;
mod dates;
mod eras;
mod features;
mod foreign;
mod guide;
mod layers;
mod length;
mod links;
mod map;
mod measures;
mod methods;
mod orphans;
mod paths;
mod revision;
mod security;
mod source;
mod tree;
mod words;

use std::fmt;

use crate::{cargo::Failure, limits};
use tree::Tree;

/// One broken rule: where, what, and what to do about it.
#[derive(Debug)]
struct Fault {
    path: String,
    /// 0 when the whole file is meant.
    line: usize,
    what: String,
}

type Rule = fn(&Tree) -> Vec<Fault>;

const RULES: &[(&str, Rule)] = &[
    ("crate imports follow the arrows", layers::check),
    ("eras and roles do not import each other", eras::check),
    ("eras stay in the engine", eras::check_asked),
    ("no date of a revision outside its folder", dates::check),
    ("no name of a method outside its table", methods::check),
    ("`Revision` is opaque and unordered", revision::check),
    ("features only add", features::check),
    ("foreign types stay out of public signatures", foreign::check),
    ("no word of unfinished work, no path of one machine", words::check),
    ("a file is one idea", length::check),
    ("prose is wrapped", length::check_width),
    ("no forgotten file", orphans::check),
    ("local links resolve", links::check),
    ("the guide's examples are tests", guide::check),
    ("what is said to be tested is", coverage::check),
    ("what is promised is tested", security::check),
    ("what is said to be possible is", capabilities::check),
    ("`docs/limits.md` is the table of the ledger", check_limits),
    ("what pages and comments name is there", map::references::check),
    ("the map is short", map::check_length),
    ("the map of the crates is true", map::crates::check),
    ("the map of the server is true", map::rooms::check),
    ("each feature has its row", map::features::check),
];

const USAGE: &str = "cargo xtask tidy [--list folders|names|cycles|back|docs|words [folder]]";

/// Checks every rule and measure. With `--list`, prints what a measure counts instead.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let tree = Tree::load()?;
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => check(&tree),
        ["--list", word] => list(&tree, word, ""),
        ["--list", word, under] => list(&tree, word, under),
        _ => Err(Failure::new(format!("`{}` is not `--list <measure> [folder]`", args.join(" ")), USAGE)),
    }
}

fn check_limits(_: &Tree) -> Vec<Fault> {
    let path = crate::workspace::root().join(limits::PAGE);
    let is_current = std::fs::read_to_string(path).is_ok_and(|text| text == limits::page());
    let what = "is not the table of `pintle-proto/src/ledger/rows.rs`: run `cargo xtask limits`";
    (!is_current).then(|| Fault::new(limits::PAGE, 0, what)).into_iter().collect()
}

fn list(tree: &Tree, word: &str, under: &str) -> Result<(), Failure> {
    let Some(offenders) = measures::list(tree, word, under) else {
        let known = measures::lists().join(", ");
        return Err(Failure::new(format!("no such measure: `{word}`; there are: {known}"), USAGE));
    };
    for fault in &offenders {
        println!("{fault}");
    }
    println!("{} in all", offenders.len());
    Ok(())
}

fn check(tree: &Tree) -> Result<(), Failure> {
    let mut count = 0;
    for (name, rule) in RULES {
        let faults = rule(tree);
        println!("    {} {name}", if faults.is_empty() { "ok" } else { "NO" });
        count += print(&faults);
    }
    count += print(&measures::check(tree));
    if tree.digest.is_none() {
        println!(
            "    skipped: no digest of the specification to hold `docs/coverage.md` against; set PINTLE_DIGEST"
        );
    }
    if count == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("{count} faults found by tidy"), "cargo xtask tidy"))
}

fn print(faults: &[Fault]) -> usize {
    for fault in faults {
        println!("       {fault}");
    }
    faults.len()
}

impl Fault {
    fn new(path: impl Into<String>, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.into(), line, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Shared by the tests of the rules.
#[cfg(test)]
mod testing {
    use super::{Fault, Rule, tree::Tree};

    /// `path:line` of every fault that `rule` finds in a workspace of these files.
    pub(super) fn places(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
        let place = |fault: &Fault| format!("{}:{}", fault.path, fault.line);
        rule(&Tree::of(files)).iter().map(place).collect()
    }
}
