//! Tables in pages that a command of ours writes.

use std::fs;

use crate::cargo::Failure;
use crate::workspace::root;

/// Puts `table` between the two marks of `name` in a page.
pub(crate) fn rewrite(page: &str, name: &str, table: &str, command: &str) -> Result<(), Failure> {
    let failure = |error: std::io::Error| Failure::new(format!("`{page}`: {error}"), command);
    let path = root().join(page);
    let text = fs::read_to_string(&path).map_err(failure)?;
    let Some(text) = replaced(&text, name, table, command) else {
        let open = open(name, command);
        return Err(Failure::new(format!("`{page}` lacks the line `{open}` or `{}`", close(name)), command));
    };
    fs::write(&path, text).map_err(failure)
}

fn open(name: &str, command: &str) -> String {
    format!("<!-- {name}: written by `{command}` -->")
}

fn close(name: &str) -> String {
    format!("<!-- end of {name} -->")
}

fn replaced(page: &str, name: &str, table: &str, command: &str) -> Option<String> {
    let (open, close) = (open(name, command), close(name));
    let (before, rest) = page.split_once(&open)?;
    let (_, after) = rest.split_once(&close)?;
    Some(format!("{before}{open}\n{table}{close}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let page = |table: &str| {
            format!("before\n<!-- sizes: written by `measure` -->\n{table}<!-- end of sizes -->\nafter")
        };
        assert_eq!(replaced(&page("old\n"), "sizes", "new\n", "measure").unwrap(), page("new\n"));
        assert_eq!(replaced(&page("old\n"), "others", "new\n", "measure"), None);
    }
}
