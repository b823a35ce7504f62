//! The table of the rooms of the server: every folder has a row, which names all other rooms that it imports.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{Fault, measures::crossings, tree::Tree},
    PAGE,
    table::{rows, spans},
};

const HEAD: &str = "| room | contents | imports |";
/// The crate and the folder that have the rooms.
const CRATE: &str = "pintle";
const FOLDER: &str = "server";

pub(in super::super) fn check(tree: &Tree) -> Vec<Fault> {
    let rows = rows(tree.text(PAGE), "", HEAD);
    let mut faults = Vec::new();
    let named = |cell: &str| spans(cell).map(str::to_owned).collect::<BTreeSet<String>>();
    let mut rooms: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for row in &rows {
        let [room, _, imports] = row.cells[..] else { continue };
        for room in named(room) {
            rooms.insert(room, (row.line, named(imports)));
        }
    }
    faults.extend(missing(tree, &rooms));
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let all = crossings(tree);
    for crossing in all.iter().filter(|(krate, _)| *krate == CRATE).flat_map(|(_, all)| all) {
        let (Some(from), Some(to)) =
            (room_of(&rooms, crossing.importer()), room_of(&rooms, crossing.imported()))
        else {
            continue;
        };
        if from != to {
            found.entry(from).or_default().insert(to);
        }
    }
    for (room, (line, stated)) in &rooms {
        let imported = found.remove(room.as_str()).unwrap_or_default();
        let unstated = imported.iter().filter(|other| !stated.contains(**other));
        faults.extend(unstated.map(|other| {
            let what = format!(
                "`{room}` imports `{other}`, and its row does not name it; remove the import, or add the name"
            );
            Fault::new(PAGE, *line, what)
        }));
        let unused = stated.iter().filter(|other| !imported.contains(other.as_str()));
        faults.extend(unused.map(|other| {
            Fault::new(
                PAGE,
                *line,
                format!("`{room}` does not import `{other}`; remove the name from its row"),
            )
        }));
    }
    faults
}

/// The folders without a row, and the rows without a folder.
fn missing(tree: &Tree, rooms: &BTreeMap<String, (usize, BTreeSet<String>)>) -> Vec<Fault> {
    let root = format!("{CRATE}/src/{FOLDER}/");
    let is_folder = |path: &str| tree.paths.iter().any(|other| other.starts_with(&format!("{path}/")));
    let folders = tree.paths.iter().filter_map(|path| {
        let (folder, _) = path.strip_prefix(&root)?.split_once('/')?;
        Some(folder)
    });
    let folders: BTreeSet<&str> = folders.collect();
    let unnamed = folders.iter().filter(|folder| !rooms.contains_key(**folder));
    let unnamed = unnamed.map(|folder| {
        Fault::new(PAGE, 0, format!("`{root}{folder}` has no row in the table of rooms; add one"))
    });
    let gone = rooms.iter().filter(|(room, _)| !is_folder(&format!("{root}{room}")));
    let gone = gone.map(|(room, (line, _))| {
        Fault::new(PAGE, *line, format!("there is no room `{room}`; remove its row"))
    });
    unnamed.chain(gone).collect()
}

/// The innermost room that a folder lies in.
fn room_of<'a>(rooms: &'a BTreeMap<String, (usize, BTreeSet<String>)>, folder: &[&str]) -> Option<&'a str> {
    let (first, inside) = folder.split_first()?;
    let inside = inside.join("/");
    let lies_in = |room: &&String| inside == **room || inside.starts_with(&format!("{room}/"));
    rooms
        .keys()
        .filter(lies_in)
        .max_by_key(|room| room.len())
        .map(String::as_str)
        .filter(|_| *first == FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_import_what_their_rows_name() {
        let page = "| room | contents | imports |\n|---|---|---|\n| `core` | the core | `form` |\n| `form` | forms | none |\n\
                    | `gone` | nothing | none |\n";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", page),
            ("pintle/src/lib.rs", "mod server;"),
            ("pintle/src/server/mod.rs", "mod core;\nmod form;\nmod http;"),
            ("pintle/src/server/core/mod.rs", "mod cx;\npub struct Core;"),
            ("pintle/src/server/core/cx.rs", ""),
            ("pintle/src/server/form/mod.rs", "mod field;\nuse crate::server::core::Core;"),
            ("pintle/src/server/form/field.rs", ""),
            ("pintle/src/server/http/mod.rs", ""),
        ]);
        let found: Vec<String> = check(&tree).into_iter().map(|fault| fault.what).collect();
        assert_eq!(
            found,
            [
                "`pintle/src/server/http` has no row in the table of rooms; add one",
                "there is no room `gone`; remove its row",
                "`core` does not import `form`; remove the name from its row",
                "`form` imports `core`, and its row does not name it; remove the import, or add the name",
            ]
        );
    }
}
