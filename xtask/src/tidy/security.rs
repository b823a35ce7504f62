//! Every promise in `SECURITY.md` must name a test, and `docs/promises.md` all tests of each.

use super::Fault;
use super::coverage::named_tests;
use super::tree::Tree;

const PAGE: &str = "SECURITY.md";
/// The first line of each table of promises.
const HEAD: &str = "| | promise | test |";
const TESTS_PAGE: &str = "docs/promises.md";
/// The first line of the table of their tests.
const TESTS_HEAD: &str = "| | tests | how |";
/// Ten minutes of reading.
const MAX_WORDS: usize = 2300;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let promises = rows(tree, PAGE, HEAD);
    let tested = rows(tree, TESTS_PAGE, TESTS_HEAD);
    let mut faults = misnumbered(PAGE, HEAD, &promises);
    faults.extend(misnumbered(TESTS_PAGE, TESTS_HEAD, &tested));
    faults.extend(promises.iter().filter_map(|promise| unproved(promise, &tested)));
    for row in &tested {
        faults.extend(unpromised(row, &promises));
        faults.extend(named_tests(tree, row.second).into_iter().map(|what| row.fault(what)));
    }
    faults.extend(too_long(tree.text(PAGE)));
    faults
}

/// One row of a table of either page.
struct PromiseRow<'a> {
    page: &'static str,
    line: usize,
    number: &'a str,
    second: &'a str,
    third: &'a str,
}

impl PromiseRow<'_> {
    fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::new(self.page, self.line, what)
    }
}

/// The rows of the tables that start with `head`.
fn rows<'a>(tree: &'a Tree, page: &'static str, head: &str) -> Vec<PromiseRow<'a>> {
    let mut found = Vec::new();
    let mut in_table = false;
    for (text, line) in tree.text(page).lines().zip(1..) {
        in_table = text == head || (in_table && text.starts_with('|'));
        if !in_table || text == head || text.starts_with("|-") {
            continue;
        }
        let mut cells = text.trim_matches('|').split('|').map(str::trim);
        let mut next = || cells.next().unwrap_or("");
        found.push(PromiseRow { page, line, number: next(), second: next(), third: next() });
    }
    found
}

/// The rows whose numbers are not 1, 2, 3 and so on.
fn misnumbered(page: &str, head: &str, rows: &[PromiseRow<'_>]) -> Vec<Fault> {
    if rows.is_empty() {
        return vec![Fault::new(page, 0, format!("no table starts with `{head}`; list the promises in one"))];
    }
    let wrong = rows.iter().zip(1..).filter(|(row, expected)| row.number != expected.to_string());
    let fault = |(row, expected): (&PromiseRow<'_>, usize)| {
        row.fault(format!("row `{}` is not {expected}; number the rows in order", row.number))
    };
    wrong.map(fault).collect()
}

/// A promise must name one of the tests of its row.
fn unproved(promise: &PromiseRow<'_>, tested: &[PromiseRow<'_>]) -> Option<Fault> {
    let Some(row) = tested.iter().find(|row| row.number == promise.number) else {
        let what = format!("promise `{}` has no row in `{TESTS_PAGE}`; name its tests there", promise.number);
        return Some(promise.fault(what));
    };
    let [test] = in_backticks(promise.third).collect::<Vec<_>>()[..] else {
        return Some(promise.fault("the row does not name one test; write the name of one in backticks"));
    };
    let is_listed = in_backticks(row.second).any(|named| named.rsplit("::").next() == Some(test));
    let what = format!("`{test}` is not in row `{}` of `{TESTS_PAGE}`; name a test of that row", row.number);
    (!is_listed).then(|| promise.fault(what))
}

/// A row of tests must have a promise.
fn unpromised(row: &PromiseRow<'_>, promises: &[PromiseRow<'_>]) -> Option<Fault> {
    let is_promised = promises.iter().any(|promise| promise.number == row.number);
    let what = format!("row `{}` is no promise of `{PAGE}`; remove it, or make the promise", row.number);
    (!is_promised).then(|| row.fault(what))
}

fn in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn too_long(page: &str) -> Option<Fault> {
    let words = page.split_whitespace().count();
    let what = format!(
        "{words} words, at most {MAX_WORDS}: shorten or merge promises, and move details to `{TESTS_PAGE}`"
    );
    (words > MAX_WORDS).then(|| Fault::new(PAGE, 0, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "| 1 | It holds. | `it_holds` |\n| 2 | It stays. | `it_stays` |\n";
    const GOOD_TESTS: &str =
        "| 1 | `a/src/x.rs::it_holds`, `::it_stays` | |\n| 2 | `a/src/x.rs::it_stays` | By force. |\n";

    fn faults(promises: &str, tests: &str) -> Vec<String> {
        let page = format!("# Security\n\n{HEAD}\n|---|---|---|\n{promises}\nNo row.\n");
        faults_of(&page, &format!("# Promises\n\n{TESTS_HEAD}\n|---|---|---|\n{tests}"))
    }

    fn faults_of(page: &str, tests_page: &str) -> Vec<String> {
        let source = "#[test]\nfn it_holds() {}\n#[test]\nfn it_stays() {}\n";
        let tree = Tree::of(&[(PAGE, page), (TESTS_PAGE, tests_page), ("a/src/x.rs", source)]);
        check(&tree).into_iter().map(|fault| fault.to_string()).collect()
    }

    #[test]
    fn two_pages_with_the_same_numbers_are_fine() {
        assert_eq!(faults(GOOD, GOOD_TESTS), [""; 0]);
        let second_table = GOOD.replace("| 2 |", &format!("\n## More\n\n{HEAD}\n|---|---|---|\n| 2 |"));
        assert_eq!(faults(&second_table, GOOD_TESTS), [""; 0]);
    }

    #[test]
    fn a_page_without_a_table_is_found() {
        let found = faults_of("# Security\n\nTrust us.\n", "");
        assert_eq!(
            found,
            [
                "SECURITY.md: no table starts with `| | promise | test |`; list the promises in one",
                "docs/promises.md: no table starts with `| | tests | how |`; list the promises in one",
            ]
        );
    }

    #[test]
    fn numbers_are_in_order_and_there_once() {
        assert_eq!(
            faults(&GOOD.replace("| 2 |", "| 1 |"), GOOD_TESTS),
            [
                "SECURITY.md:6: row `1` is not 2; number the rows in order",
                "docs/promises.md:6: row `2` is no promise of `SECURITY.md`; remove it, or make the promise",
            ]
        );
        assert_eq!(
            faults(GOOD, &GOOD_TESTS.replace("| 2 |", "| 3 |")),
            [
                "docs/promises.md:6: row `3` is not 2; number the rows in order",
                "SECURITY.md:6: promise `2` has no row in `docs/promises.md`; name its tests there",
                "docs/promises.md:6: row `3` is no promise of `SECURITY.md`; remove it, or make the promise",
            ]
        );
    }

    #[test]
    fn a_promise_names_one_test_of_its_row() {
        for (test, fault) in [
            ("`it_breaks`", "`it_breaks` is not in row `2` of `docs/promises.md`; name a test of that row"),
            ("`it_holds`", "`it_holds` is not in row `2` of `docs/promises.md`; name a test of that row"),
            ("it_stays", "the row does not name one test; write the name of one in backticks"),
            ("`it_stays`, `it_holds`", "the row does not name one test; write the name of one in backticks"),
        ] {
            let found = faults(&GOOD.replace("`it_stays`", test), GOOD_TESTS);
            assert_eq!(found, [format!("SECURITY.md:6: {fault}")], "{test}");
        }
    }

    #[test]
    fn a_row_names_tests_that_are_there() {
        let broken = GOOD_TESTS.replace("::it_stays` | |", "::it_breaks` | |");
        assert!(faults(GOOD, &broken)[0].contains("5: there is no test `it_breaks` in `a/src/x.rs`"));
        let empty = GOOD_TESTS.replace("`a/src/x.rs::it_stays` |", "|");
        assert!(faults(GOOD, &empty)[1].contains("6: the row names no test"));
    }

    #[test]
    fn a_page_of_more_than_ten_minutes_is_found() {
        let page = |words: usize| "word ".repeat(words);
        assert!(too_long(&page(MAX_WORDS)).is_none());
        let fault = too_long(&page(MAX_WORDS + 1)).unwrap().to_string();
        assert!(fault.contains("2301 words, at most 2300: shorten or merge promises"), "{fault}");
    }
}
