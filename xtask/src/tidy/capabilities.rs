//! Every row of `docs/capabilities.md` must name items of the API that exist, and tests that exist.

use super::Fault;
use super::coverage::named_tests;
use super::tree::Tree;

const PAGE: &str = "docs/capabilities.md";
/// The first line of each table of capabilities.
const HEAD: &str = "| # | capability | API | tests |";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let page = tree.text(PAGE);
    let snapshots = snapshots(tree);
    let mut faults = Vec::new();
    let mut next = 1;
    let mut in_table = false;
    for (line, at) in page.lines().zip(1..) {
        in_table = line == HEAD || (in_table && line.starts_with('|'));
        if !in_table || line == HEAD || line.starts_with("|-") {
            continue;
        }
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[number, _, api, tests] = &cells[..] else {
            faults.push(Fault::new(
                PAGE,
                at,
                "the row has not four cells; write `| # | capability | API | tests |`",
            ));
            continue;
        };
        if number != next.to_string() {
            faults.push(Fault::new(
                PAGE,
                at,
                format!("row `{number}` is not {next}; number the rows in order"),
            ));
        }
        next += 1;
        let unknown = names(api).filter(|name| !is_known(tree, &snapshots, name));
        faults.extend(unknown.map(|name| {
            Fault::new(PAGE, at, format!("there is no public `{name}`; name an item that is there"))
        }));
        faults.extend(named_tests(tree, tests).into_iter().map(|what| Fault::new(PAGE, at, what)));
    }
    if next == 1 {
        faults.push(Fault::new(
            PAGE,
            0,
            format!("no table starts with `{HEAD}`; list the capabilities in one"),
        ));
    }
    faults
}

/// The names in backticks. An attribute is named with its brackets.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    // Every second piece is inside backticks.
    cell.split('`').skip(1).step_by(2).map(|name| name.trim_start_matches("#[").trim_end_matches(']'))
}

/// The snapshots of the API, without the parameters of generic types.
fn snapshots(tree: &Tree) -> String {
    let texts = tree.texts.iter().filter(|(path, _)| path.starts_with("docs/api/"));
    let mut all = String::new();
    for (_, text) in texts {
        let mut depth = 0_usize;
        for char in text.chars() {
            match char {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                '\n' => {
                    depth = 0;
                    all.push(char);
                }
                _ if depth == 0 => all.push(char),
                _ => {}
            }
        }
    }
    all
}

/// Whether a path ends an entry of the snapshots. What is newer than they are has to be in the source: a file that defines the
/// last name and mentions the one before.
fn is_known(tree: &Tree, snapshots: &str, path: &str) -> bool {
    let is_name = |next: Option<char>| next.is_some_and(|char| char.is_alphanumeric() || char == '_');
    let path = path.strip_prefix("pintle::").unwrap_or(path);
    let tail = format!("::{path}");
    if snapshots.match_indices(&tail).any(|(at, _)| !is_name(snapshots[at + tail.len()..].chars().next())) {
        return true;
    }
    let (holder, last) = path.rsplit_once("::").unwrap_or(("", path));
    let holder = holder.rsplit("::").next().unwrap_or("");
    tree.published().filter(|source| holder.is_empty() || source.words(holder).next().is_some()).any(
        |source| {
            let before = |at: usize| source.bare[..at].trim_end();
            let defines = |at: usize| {
                let kinds = ["fn", "struct", "enum", "trait", "mod", "const", "type", "macro_rules!"];
                let item = kinds.iter().any(|kind| before(at).ends_with(kind));
                item || (before(at).ends_with("pub") && source.bare[at + last.len()..].starts_with(':'))
            };
            source.words(last).any(defines)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rows: &str) -> Vec<String> {
        let page = format!("# C\n\n{HEAD}\n|---|---|---|---|\n{rows}");
        let tree = Tree::of(&[
            (PAGE, &page),
            ("docs/api/a.txt", "pub fn a::Thing<T>::run(&self)\npub mod a::inner\n"),
            (
                "a/src/x.rs",
                "impl Fresh {\n    pub fn add(&self) {}\n}\npub struct Open {\n    pub id: u64,\n}\n",
            ),
            ("a/tests/it.rs", "#[test]\nfn it_holds() {}\n"),
        ]);
        check(&tree).into_iter().map(|fault| fault.what).collect()
    }

    #[test]
    fn a_row_names_what_is_there() {
        let row =
            |number: u32, api: &str| format!("| {number} | adding | {api} | `a/tests/it.rs::it_holds` |\n");
        let good =
            row(1, "`Thing::run`, `inner`, `#[run]`") + &row(2, "`Fresh::add`, `Open::id`") + &row(3, "none");
        assert_eq!(faults(&good), [""; 0]);
        for bad in ["`Thing::ru`", "`Thing::add`", "`Fresh::run`", "`gone`", "`Open::name`"] {
            let found = faults(&row(1, bad));
            assert!(found.len() == 1 && found[0].starts_with("there is no public"), "{bad}: {found:?}");
        }
        assert_eq!(faults(&row(2, "none")), ["row `2` is not 1; number the rows in order"]);
        assert!(
            faults("| 1 | adding | none | `a/tests/it.rs::it_breaks` |\n")[0].contains("there is no test")
        );
        assert!(faults("| 1 | adding | none |\n")[0].contains("four cells"));
        assert!(faults("")[0].contains("list the capabilities"));
    }
}
