//! A snippet that nobody compiles is wrong sooner or later.

use super::Fault;
use super::tree::Tree;

/// The files whose doc tests are the pages: a page is with the crate that its examples need.
const TESTED: [&str; 8] = [
    "pintle/src/guide.rs",
    "pintle-host/src/guide.rs",
    "pintle-oauth/src/guide.rs",
    "pintle-openapi/src/guide.rs",
    "pintle-redis/src/guide.rs",
    "pintle-otel/src/guide.rs",
    "pintle-skills/src/guide.rs",
    "pintle-serve/src/guide.rs",
];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let is_tested = |page: &str| {
        let named = format!("include_str!(\"../../{page}\")");
        tree.texts.iter().any(|(path, text)| TESTED.contains(&path.as_str()) && text.contains(&named))
    };
    let mut faults = Vec::new();
    for (path, text) in tree.texts.iter().filter(|(path, _)| is_page(path)) {
        if !is_tested(path) {
            let what = format!("its examples are not compiled; add it to {}", TESTED.join(" or "));
            faults.push(Fault::new(path, 0, what));
        }
        let mut program = false;
        for (number, line) in text.lines().enumerate() {
            if program && (line == "#" || line.starts_with("# ")) {
                let what = "only rustdoc hides this line, and people read the page elsewhere; write it out";
                faults.push(Fault::new(path, number + 1, what));
            }
            let Some(words) = line.trim_start().strip_prefix("```") else { continue };
            program = words.starts_with("rust");
            if words.split(',').any(|word| word == "ignore" || word == "compile_fail") {
                let what = "this example is not compiled; let it compile, or say `text` if it is no program";
                faults.push(Fault::new(path, number + 1, what));
            }
        }
    }
    faults
}

fn is_page(path: &str) -> bool {
    let below = path.strip_prefix("docs/");
    path == "README.md" || below.is_some_and(|name| name.ends_with(".md") && !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn a_page_that_is_not_tested_is_found() {
        let found = places(
            check,
            &[
                (
                    TESTED[0],
                    "#[doc = include_str!(\"../../README.md\")]\n#[doc = include_str!(\"../../docs/a.md\")]",
                ),
                ("README.md", "```rust,no_run\n```"),
                ("docs/a.md", "text\n```rust,ignore\n```\n```rust\n# hidden\n```\n```toml\n# seen\n```\n"),
                ("docs/b.md", "```rust\n```"),
                ("ARCHITECTURE.md", "```\n```"),
            ],
        );
        assert_eq!(found, ["docs/a.md:2", "docs/a.md:5", "docs/b.md:0"]);
    }
}
