//! Tests that `docs/coverage.md` names must exist: every row of the digest's part 1 is there, and every test it names.

use std::collections::BTreeSet;

use super::Fault;
use super::source::Source;
use super::tree::Tree;

const PAGE: &str = "docs/coverage.md";
/// The beginning of a cell that gives a reason instead of a test.
const ADMITTED: &[&str] = &["not built: ", "untested: "];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let Some((_, page)) = tree.texts.iter().find(|(path, _)| path == PAGE) else {
        return vec![Fault::new(PAGE, 0, "the page is missing; name the tests of every row there")];
    };
    let covered = rows(page);
    let mut faults: Vec<_> = covered
        .iter()
        .flat_map(|row| named_tests(tree, row.rest).into_iter().map(|what| row.fault(what)))
        .collect();
    let mut seen = BTreeSet::new();
    let twice = covered.iter().filter(|row| !seen.insert(row.key()));
    faults.extend(twice.map(|row| row.fault("this row is there twice; keep one")));
    if let Some(digest) = &tree.digest {
        let wanted = rows(digest);
        let known: BTreeSet<_> = wanted.iter().map(CoverageRow::key).collect();
        let foreign = covered.iter().filter(|row| !known.contains(&row.key()));
        faults.extend(foreign.map(|row| row.fault("the digest has no such row; mend or remove it")));
        faults.extend(wanted.iter().filter(|row| !seen.contains(&row.key())).map(|row| {
            let what = format!("`{}` lacks the row {}; name its tests", row.section, row.name);
            Fault::new(PAGE, 0, what)
        }));
    }
    faults
}

/// One row of a table of part 1, in the digest or on the page.
struct CoverageRow<'a> {
    /// `1.4`.
    section: &'a str,
    /// The first cell.
    name: &'a str,
    /// The second cell.
    rest: &'a str,
    line: usize,
}

impl<'a> CoverageRow<'a> {
    fn key(&self) -> (&'a str, &'a str) {
        (self.section, self.name)
    }

    fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::new(PAGE, self.line, what)
    }
}

/// The rows below each heading `## 1.x`; the head of a table and the line under it are none.
fn rows(text: &str) -> Vec<CoverageRow<'_>> {
    let mut found = Vec::new();
    let mut section = "";
    let mut before = "";
    for (line, number) in text.lines().zip(1..) {
        if line.starts_with('#') {
            let title = line.trim_start_matches('#').trim();
            let number = title.split(' ').next().unwrap_or("");
            // Part 1 itself is `1.`.
            section = if number.len() > 2 && number.starts_with("1.") { number } else { "" };
        }
        // A table starts with its head.
        if !section.is_empty() && line.starts_with('|') && before.starts_with('|') && !line.starts_with("|-")
        {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let (name, rest) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
            found.push(CoverageRow { section, name, rest, line: number });
        }
        before = line;
    }
    found
}

/// The faults of the tests that a cell names.
pub(super) fn named_tests(tree: &Tree, cell: &str) -> Vec<String> {
    let admitted = ADMITTED.iter().filter_map(|words| cell.find(words)).min();
    let mut wrong = Vec::new();
    let mut named = 0;
    let mut file = "";
    // Every second piece is inside backticks.
    for word in cell[..admitted.unwrap_or(cell.len())].split('`').skip(1).step_by(2) {
        let Some((path, test)) = word.split_once("::") else {
            wrong.push(format!("`{word}` names no test; write `path::test`"));
            continue;
        };
        // `::test` is in the file that was named last.
        file = if path.is_empty() { file } else { path };
        named += 1;
        if !is_test(tree, file, test) {
            wrong.push(format!("there is no test `{test}` in `{file}`; name one that is there"));
        }
    }
    if named == 0 && admitted.is_none() {
        wrong.push(format!("the row names no test; name one, or say one of {ADMITTED:?} and why"));
    }
    wrong
}

/// Whether this file has this test: a function that is run, or a part of a transcript.
fn is_test(tree: &Tree, path: &str, test: &str) -> bool {
    if path.ends_with(".rs") {
        let source = tree.sources.iter().find(|source| source.path == path);
        return source.is_some_and(|source| source.words(test).any(|at| is_run(source, at)));
    }
    let transcript = tree.texts.iter().find(|(known, _)| known == path && path.contains("/tests/"));
    transcript.is_some_and(|(_, text)| text.lines().any(|line| line.strip_prefix("== ") == Some(test)))
}

/// Whether the name at this place is that of a function that the test harness runs.
fn is_run(source: &Source, at: usize) -> bool {
    let before = &source.bare[..at];
    let item = &before[before.rfind(['{', '}', ';']).map_or(0, |end| end + 1)..];
    let run = ["#[test]", "::test]", "::test("].iter().any(|attribute| item.contains(attribute));
    item.trim_end().ends_with("fn") && run
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "
        mod tests {
            #[test]
            fn adds() {}
            #[tokio::test(start_paused = true)]
            #[expect(unused, reason = \"a; b\")]
            async fn waits() {}
            // #[test]
            fn helps() { adds(); }
        }";
    const DIGEST: &str = "# 1. Matrix\n| Not | ours |\n|---|---|\n| x | y |\n## 1.1 Requests\n\
                          | Method | R1 |\n|---|---|\n| `ping` | - |\n| `a`, `b` | - |\n\n\
                          ## 1.2 More\n| Method | R1 |\n|---|---|\n| `ping` | - |\n## 2.1 Other\n| a |\n|---|\n| b |\n";

    fn found(page: &str, digest: Option<&str>) -> Vec<String> {
        let files = [
            (PAGE, page),
            ("a/src/lib.rs", TESTS),
            ("a/tests/talk.txt", "# No part\n== they talk\nC 1 ping\n"),
        ];
        let mut tree = Tree::of(&files);
        tree.digest = digest.map(str::to_owned);
        check(&tree).iter().map(|fault| format!("{} {}", fault.line, fault.what)).collect()
    }

    fn page(cell: &str) -> String {
        format!("## 1.1 R\n| row | tests |\n|---|---|\n| `ping` | {cell} |\n")
    }

    #[test]
    fn a_page_with_every_row_and_no_other_is_fine() {
        let second = "| `a`, `b` | not built: nobody asked |\n## 1.2 M\n| row | tests |\n|---|---|\n";
        let third = "| `ping` | `a/tests/talk.txt::they talk` |\n";
        let whole = page("`a/src/lib.rs::adds`, `::waits`") + second + third;
        assert_eq!(found(&whole, Some(DIGEST)), [""; 0]);
        let faults = found(&(page("`a/src/lib.rs::adds`") + "| `c` | untested: all |\n"), Some(DIGEST));
        assert_eq!(
            faults,
            [
                "5 the digest has no such row; mend or remove it",
                "0 `1.1` lacks the row `a`, `b`; name its tests",
                "0 `1.2` lacks the row `ping`; name its tests",
            ]
        );
        assert_eq!(
            found(&(page("untested: all") + "| `ping` | untested: all |"), None).len(),
            1,
            "there twice"
        );
    }

    #[test]
    fn a_test_that_is_not_there_is_found_without_the_digest() {
        for (cell, faults) in [
            ("`a/src/lib.rs::adds`", 0),
            ("`a/src/lib.rs::adds`; untested: `b::c`", 0),
            ("`a/src/lib.rs::add`", 1),
            ("`a/src/lib.rs::helps`", 1),
            ("`a/src/gone.rs::adds`, `::waits`", 2),
            ("`a/tests/talk.txt::they`", 1),
            ("`a/tests/talk.txt::No part`", 1),
            ("`adds`", 2),
            ("surely", 1),
            ("", 1),
        ] {
            assert_eq!(found(&page(cell), None).len(), faults, "{cell}");
        }
    }
}
