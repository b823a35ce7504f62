//! The table of features in the documentation of a crate: each feature of its `Cargo.toml` has a row.

use super::{
    super::{Fault, tree::Tree},
    table::{rows, spans},
};

const HEAD: &str = "| feature | adds | by default |";

pub(in super::super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for krate in tree.crates.iter().filter(|krate| krate.published) {
        let path = format!("{}/src/lib.rs", krate.dir);
        let rows = rows(tree.text(&path), "//! ", HEAD);
        if rows.is_empty() {
            continue;
        }
        let defaults = defaults(tree.text(&format!("{}/Cargo.toml", krate.dir)));
        let named = |row: &super::table::TableRow<'_>| {
            row.cells.first().and_then(|cell| spans(cell).next().map(str::to_owned))
        };
        for row in &rows {
            let Some(feature) = named(row) else { continue };
            if !krate.features.contains(&feature) {
                let what = format!("`{feature}` is no feature of `{}`; remove the row", krate.name);
                faults.push(Fault::new(&path, row.line, what));
            }
            let stated = row.cells.get(2).is_some_and(|cell| *cell == "yes");
            if stated != defaults.contains(&feature.as_str()) {
                let what =
                    format!("the row of `{feature}` differs from `default` in `Cargo.toml`; correct it");
                faults.push(Fault::new(&path, row.line, what));
            }
        }
        let missing = krate
            .features
            .iter()
            .filter(|feature| !rows.iter().any(|row| named(row).as_ref() == Some(*feature)));
        faults.extend(missing.map(|feature| {
            Fault::new(&path, rows[0].line, format!("the feature `{feature}` has no row; add one"))
        }));
    }
    faults
}

/// The default features of a manifest.
fn defaults(manifest: &str) -> Vec<&str> {
    let list = manifest.split_once("\ndefault = [").and_then(|(_, rest)| rest.split_once(']'));
    list.map_or(Vec::new(), |(list, _)| list.split('"').skip(1).step_by(2).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_manifest_must_agree() {
        let page = "//! | feature | adds | by default |\n//! |---|---|---|\n//! | `a` | a | no |\n//! | `gone` | b | no |\n";
        let mut tree = Tree::of(&[
            ("pintle/src/lib.rs", page),
            ("pintle/Cargo.toml", "[features]\ndefault = [\"a\"]\na = []\nb = []\n"),
        ]);
        tree.crates[0].features = vec!["a".into(), "b".into()];
        let found: Vec<String> =
            check(&tree).iter().map(|fault| format!("{}:{}", fault.line, fault.what)).collect();
        assert_eq!(
            found,
            [
                "3:the row of `a` differs from `default` in `Cargo.toml`; correct it",
                "4:`gone` is no feature of `pintle`; remove the row",
                "3:the feature `b` has no row; add one",
            ]
        );
    }
}
