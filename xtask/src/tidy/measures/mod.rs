//! Numbers that tidy prints and holds: each has a limit in `xtask/tidy.toml`, and a limit is only ever lowered.

mod cycles;
mod docs;
mod folders;
mod imports;
mod limits;
mod modules;
mod names;
mod words;

use super::{Fault, tree::Tree};
pub(super) use imports::crossings;
use limits::Limits;

/// One number, with the places that it counts.
#[derive(Debug, Default)]
struct Measured {
    value: usize,
    /// Printed by `cargo xtask tidy --list <name>`.
    offenders: Vec<Fault>,
}

struct Measure {
    /// Key in `xtask/tidy.toml`.
    key: &'static str,
    /// Word after `--list` under which the offenders are printed.
    list: &'static str,
    about: &'static str,
    unit: &'static str,
    advice: &'static str,
    run: fn(&Tree) -> Measured,
}

const MEASURES: &[Measure] = &[
    Measure {
        key: "folders",
        list: "folders",
        about: "widest folder",
        unit: " files",
        advice: "group its files by noun in subfolders",
        run: folders::measure,
    },
    Measure {
        key: "names",
        list: "names",
        about: "type names defined twice in a crate and not in xtask/reused-names.txt",
        unit: "",
        advice: "rename one of them, or list the name in xtask/reused-names.txt with the reason",
        run: names::unlisted,
    },
    Measure {
        key: "names_percent",
        list: "names",
        about: "type names defined twice in a crate, listed ones included",
        unit: " %",
        advice: "rename one of them; the list does not help here",
        run: names::percentage,
    },
    Measure {
        key: "cycles",
        list: "cycles",
        about: "folders in an import cycle with a sibling",
        unit: "",
        advice: "move what both need into a third folder, or into the one that is imported",
        run: cycles::between_siblings,
    },
    Measure {
        key: "file_cycles",
        list: "file-cycles",
        about: "folders in an import cycle, also through files",
        unit: "",
        advice: "move what both need into a third folder, or into the one that is imported",
        run: cycles::through_files,
    },
    Measure {
        key: "back",
        list: "back",
        about: "imports from a folder back into the files above it that import from it",
        unit: "",
        advice: "move what is imported down into the folder, or into a sibling",
        run: cycles::back_up,
    },
    Measure {
        key: "docs",
        list: "docs",
        about: "doc comments that do not begin with their subject",
        unit: "",
        advice: "begin with the noun or verb: \"A bounded queue of …\", \"Returns …\"",
        run: docs::measure,
    },
    Measure {
        key: "words",
        list: "words",
        about: "names that hold a retired word",
        unit: "",
        advice: "use the word of the field, as xtask/retired-words.txt suggests",
        run: words::measure,
    },
];

/// Compares every measure with its limit. Prints one line each and returns the exceeded ones.
pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let (limits, mut faults) = Limits::read(tree);
    for measure in MEASURES {
        let value = (measure.run)(tree).value;
        let Some(limit) = limits.of(measure.key) else {
            faults.push(Fault::new(limits::FILE, 0, format!("no limit for `{}`; add a line", measure.key)));
            continue;
        };
        println!("    {}", line(measure, value, limit));
        if value > limit {
            let Measure { about, unit, advice, list, .. } = measure;
            let what = format!(
                "{about}: {value}{unit}, at most {limit}; {advice} (`cargo xtask tidy --list {list}` shows where)"
            );
            faults.push(Fault::new(limits::FILE, limits.line(measure.key), what));
        }
    }
    faults.extend(names::stale(tree));
    faults
}

/// The offenders of the measures with this `--list` word, below the folder `under`; `None` if there is no such word.
pub(super) fn list(tree: &Tree, word: &str, under: &str) -> Option<Vec<Fault>> {
    let measure = MEASURES.iter().find(|measure| measure.list == word)?;
    let mut offenders = (measure.run)(tree).offenders;
    offenders.retain(|fault| fault.path.starts_with(under));
    Some(offenders)
}

/// The words that `--list` takes.
pub(super) fn lists() -> Vec<&'static str> {
    let mut words: Vec<&str> = MEASURES.iter().map(|measure| measure.list).collect();
    words.dedup();
    words
}

fn line(measure: &Measure, value: usize, limit: usize) -> String {
    let Measure { about, unit, .. } = measure;
    let mark = if value > limit { "NO" } else { "ok" };
    let lower = if value < limit { "; lower it" } else { "" };
    format!("{mark} {about}: {value}{unit} (limit {limit}{lower})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "folders = 1\nnames = 0\nnames_percent = 0\ncycles = 0\nfile_cycles = 0\nback = 0\ndocs = 0\nwords = 0\n";

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_measure_over_its_limit_is_a_fault_with_advice() {
        let found = faults(&[
            (limits::FILE, LIMITS),
            ("pintle/src/lib.rs", "mod a;"),
            ("pintle/src/a.rs", "/// A thing.\nstruct A;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("xtask/tidy.toml:1: widest folder: 2 files, at most 1;"), "{found:?}");
        assert!(found[0].contains("--list folders"), "{found:?}");
    }

    #[test]
    fn a_measure_without_a_limit_is_a_fault() {
        let found = faults(&[(limits::FILE, LIMITS.trim_end_matches("words = 0\n"))]);
        assert_eq!(found, ["xtask/tidy.toml: no limit for `words`; add a line"]);
    }

    #[test]
    fn a_limit_that_is_too_high_is_pointed_out() {
        assert!(line(&MEASURES[0], 3, 5).ends_with("3 files (limit 5; lower it)"));
        assert!(line(&MEASURES[0], 5, 5).ends_with("5 files (limit 5)"));
    }

    #[test]
    fn every_measure_can_be_listed() {
        let tree = Tree::of(&[("pintle/src/lib.rs", "/// What it is.\nstruct A;\n")]);
        assert!(lists().iter().all(|word| list(&tree, word, "").is_some()));
        assert_eq!(list(&tree, "docs", "pintle/src").map(|faults| faults.len()), Some(1));
        assert_eq!(list(&tree, "docs", "pintle/tests").map(|faults| faults.len()), Some(0));
        assert!(list(&tree, "nothing", "").is_none());
    }
}
