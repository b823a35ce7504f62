//! Only `pintle-proto/src/revision` knows what a revision is called.

use super::Fault;
use super::tree::Tree;

const HOME: &str = "pintle-proto/src/revision";
const ADVICE: &str = "a difference between revisions is a column of the dialect table, between eras a method of both \
                      era modules";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for source in tree.published().filter(|source| !source.path.starts_with(HOME)) {
        // Above proto not even a constant named after a revision may be used.
        let named = source.krate != "pintle-proto";
        for at in dates(&source.code).filter(|at| !source.is_test(*at)) {
            let found = &source.code[at..at + DATE.len()];
            if named || !found.contains('_') {
                let what = format!("`{found}` outside `{HOME}`: {ADVICE}");
                faults.push(Fault::new(&source.path, source.line(at), what));
            }
        }
    }
    faults
}

const DATE: &[u8] = b"20dd-dd-dd";

fn dates(text: &str) -> impl Iterator<Item = usize> + '_ {
    let fits = |window: &[u8]| {
        window.iter().zip(DATE).all(|(byte, want)| match want {
            b'd' => byte.is_ascii_digit(),
            b'-' => matches!(byte, b'-' | b'_'),
            _ => byte == want,
        })
    };
    text.as_bytes().windows(DATE.len()).enumerate().filter(move |(_, window)| fits(window)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    #[test]
    fn a_date_in_code_is_found_wherever_it_hides() {
        let file = "//! Since 2025-06-18.\nconst A: &str = \"2025-06-18\";\nconst B: &str = r\"mcp/2025-11-25\"; // 2025-11-25\n\
                    #[cfg(test)]\nmod tests { const C: &str = \"2025-06-18\"; }\n";
        let found = places(
            check,
            &[
                ("pintle/src/lib.rs", file),
                ("pintle/tests/it/main.rs", file),
                ("pintle-proto/src/revision/mod.rs", file),
                ("pintle-proto/src/server/mod.rs", "let v = Revision::V2025_06_18;"),
                ("pintle/examples/a.rs", "let v = Revision::V2025_06_18;"),
            ],
        );
        assert_eq!(found, ["pintle/examples/a.rs:1", "pintle/src/lib.rs:2", "pintle/src/lib.rs:3"]);
    }
}
