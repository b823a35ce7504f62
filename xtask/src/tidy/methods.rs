//! Only the method table of `pintle-types` and the schema beside it spell the name of a method.

use super::Fault;
use super::tree::Tree;

const TABLE: &str = "pintle-types/src/method.rs";
const SCHEMA: &str = "pintle-types/src/schema";
const ADVICE: &str = "use the constant of `pintle_types::method`, or a column of its table";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let Some(table) = tree.published().find(|source| source.path == TABLE) else { return Vec::new() };
    let names = names(&table.code);
    let mut faults = Vec::new();
    for source in tree.published().filter(|source| source.in_src()) {
        if source.path == TABLE || source.path.starts_with(SCHEMA) {
            continue;
        }
        for name in &names {
            let quoted = format!("\"{name}\"");
            for (at, _) in source.code.match_indices(&quoted).filter(|(at, _)| !source.is_test(*at)) {
                faults.push(Fault::new(
                    &source.path,
                    source.line(at),
                    format!("the method {quoted} outside `{TABLE}`: {ADVICE}"),
                ));
            }
        }
    }
    faults
}

/// Returns the names in the rows `CONSTANT = "name"` of the table.
fn names(table: &str) -> Vec<&str> {
    let rows = table.split(" = \"").collect::<Vec<_>>();
    let constant = |before: &str| {
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let pairs = rows.iter().zip(rows.iter().skip(1));
    pairs.filter(|(before, _)| constant(before)).filter_map(|(_, row)| row.split('"').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::places;
    use super::*;

    const ROWS: &str = "requests! {\n    CallTool TOOLS_CALL = \"tools/call\", A => B, Client {};\n    \
                        Ping PING = \"ping\", C => D, Both {};\n}\nlet other = \"x\";\n";

    #[test]
    fn the_rows_are_the_names() {
        assert_eq!(names(ROWS), ["tools/call", "ping"]);
    }

    #[test]
    fn a_name_outside_the_table_is_found() {
        let file = "//! `\"tools/call\"`.\nfn a(m: &str) -> bool { m == \"tools/call\" }\nconst B: &str = \"ping\";\n\
                    const C: &str = \"pinged\";\n#[cfg(test)]\nmod tests { const D: &str = \"ping\"; }\n";
        let found = places(
            check,
            &[
                (TABLE, ROWS),
                ("pintle-types/src/schema/tool.rs", file),
                ("pintle/src/lib.rs", file),
                ("pintle/tests/it/main.rs", file),
            ],
        );
        assert_eq!(found, ["pintle/src/lib.rs:2", "pintle/src/lib.rs:3"]);
    }
}
