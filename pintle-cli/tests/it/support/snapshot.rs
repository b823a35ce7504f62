//! Files that hold what the command prints. `PINTLE_BLESS=1` writes them.

use std::path::Path;

/// Compares a text with a file of `tests/it`.
pub(crate) fn assert_file(found: &str, file: &str) {
    let path = Path::new("tests/it").join(file);
    if std::env::var_os("PINTLE_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    same(found, &std::fs::read_to_string(&path).unwrap(), file);
}

/// Compares line by line, so that a failure names the first that differs.
pub(crate) fn same(found: &str, expected: &str, file: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            found,
            expected,
            "{file}, line {}; if that is meant, PINTLE_BLESS=1 writes it",
            number + 1
        );
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{file}: one is longer than the other");
}
