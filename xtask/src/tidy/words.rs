//! Words that must not be committed: unfinished work, and paths of the machine it was written on.

use super::Fault;
use super::source::{Source, is_name, line};
use super::tree::Tree;

/// This file has to name what it looks for.
const THIS: &str = "xtask/src/tidy/words.rs";

/// In code, tests included.
const NOWHERE: &[(&str, &str)] = &[
    ("todo!", "finish it, or return an error that says what is missing"),
    ("unimplemented!", "finish it, or return an error that says what is missing"),
    ("dbg!", "remove it, or log with `tracing`"),
    ("#[ignore", "make the test pass and quick, or delete it"),
];

/// In code that ships.
const NOT_IN_SRC: &[(&str, &str)] =
    &[(".unwrap()", "handle the case, or state the invariant with `expect(\"…\")`")];

const MACHINE: &[&str] = &["/opt/", "/root/", "/home/", "/mnt/"];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in &tree.sources {
        in_code(source, &mut faults);
    }
    for (path, text) in tree.texts.iter().filter(|(path, _)| path != THIS) {
        for start in machine_paths(text) {
            let what =
                "a path of one machine; make it relative to the workspace or take it from the environment";
            faults.push(Fault::new(path, line(text, start), what));
        }
        if path.ends_with(".rs") || path.ends_with(".toml") {
            for (at, _) in text.match_indices("FIXME") {
                faults.push(Fault::new(
                    path,
                    line(text, at),
                    "`FIXME`: fix it, or write it into ROUGH_EDGES.md",
                ));
            }
        }
    }
    faults
}

fn in_code(source: &Source, faults: &mut Vec<Fault>) {
    let mut look = |words: &[(&str, &str)], tests_too: bool| {
        for (word, advice) in words {
            for at in source.words(word).filter(|at| tests_too || !source.is_test(*at)) {
                faults.push(Fault::new(&source.path, source.line(at), format!("`{word}`: {advice}")));
            }
        }
    };
    look(NOWHERE, true);
    if source.in_src() {
        look(NOT_IN_SRC, false);
    }
}

/// Absolute paths into places that only one machine has. A `file:` URI is an example, not a place.
fn machine_paths(text: &str) -> impl Iterator<Item = usize> + '_ {
    let absolute = |at: usize| {
        let before = &text[..at];
        let part_of_longer =
            before.bytes().last().is_some_and(|byte| is_name(byte) || b".-~})*".contains(&byte));
        !part_of_longer && !before.ends_with("file://")
    };
    MACHINE.iter().flat_map(|word| text.match_indices(word)).map(|(at, _)| at).filter(move |at| absolute(*at))
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn unfinished_work_is_found_in_code_only() {
        let file = "//! todo! and x.unwrap()\nfn a() { todo!() }\nfn b() { \"dbg!\"; dbg!(1) }\nfn c() { x.unwrap() }\n\
                    fn d() { x.unwrap_or(1) }\n#[cfg(test)]\nmod tests {\n    #[ignore = \"slow\"]\n    fn e() { x.unwrap() }\n}\n";
        let found = places(check, &[("pintle/src/lib.rs", file)]);
        assert_eq!(found, [2, 3, 8, 4].map(|line| format!("pintle/src/lib.rs:{line}")));
    }

    #[test]
    fn fixme_is_found_in_comments() {
        assert_eq!(places(check, &[("pintle/src/lib.rs", "// FIXME later\n")]), ["pintle/src/lib.rs:1"]);
        assert!(places(check, &[("docs/a.md", "FIXME is refused")]).is_empty());
    }

    #[test]
    fn paths_of_this_machine_are_found() {
        let text = "see /opt/x\n`/root/.cargo`\n\"/mnt/a\"\n";
        assert_eq!(places(check, &[("docs/a.md", text)]), ["docs/a.md:1", "docs/a.md:2", "docs/a.md:3"]);
        let fine = "docs/opt/a ../opt/b file:///home/user/c $X/root/ https://a.example/home/d\n";
        assert!(places(check, &[("docs/a.md", fine)]).is_empty());
    }
}
