//! Every promise in `SECURITY.md` must name tests that are there.

use super::Fault;
use super::coverage::named_tests;
use super::tree::Tree;

const PAGE: &str = "SECURITY.md";
/// The first line of each table of promises.
const HEAD: &str = "| promise | tests |";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let Some((_, page)) = tree.texts.iter().find(|(path, _)| path == PAGE) else {
        return vec![Fault::new(PAGE, 0, "the page is missing; say what is promised there")];
    };
    let mut faults = Vec::new();
    let mut promises = 0;
    let mut in_table = false;
    for (line, number) in page.lines().zip(1..) {
        in_table = line == HEAD || (in_table && line.starts_with('|'));
        if !in_table || line == HEAD || line.starts_with("|-") {
            continue;
        }
        promises += 1;
        let tests = line.trim_matches('|').split_once('|').map_or("", |(_, tests)| tests.trim());
        faults.extend(named_tests(tree, tests).into_iter().map(|what| Fault::new(PAGE, number, what)));
    }
    if promises == 0 {
        faults.push(Fault::new(PAGE, 0, format!("no table starts with `{HEAD}`; list the promises in one")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(page: &str) -> Vec<String> {
        let tree = Tree::of(&[(PAGE, page), ("a/src/x.rs", "#[test]\nfn it_holds() {}\n")]);
        check(&tree).into_iter().map(|fault| fault.to_string()).collect()
    }

    #[test]
    fn a_promise_names_a_test_that_is_there() {
        let page = |tests: &str| format!("# Security\n\n{HEAD}\n|---|---|\n| It holds. | {tests} |\n");
        assert_eq!(faults(&page("`a/src/x.rs::it_holds`")), Vec::<String>::new());
        assert!(faults(&page("`a/src/x.rs::it_breaks`"))[0].contains("there is no test `it_breaks`"));
        assert!(faults(&page(""))[0].contains("names no test"));
        assert!(faults("# Security\n\nTrust us.\n")[0].contains("list the promises"));
    }
}
