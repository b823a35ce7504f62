//! Import cycles between the folders of a crate.
//!
//! An import leads to the file that *defines* the item: re-exports on the way are followed, so that `use crate::Tool` counts as
//! an import from `server/catalogue`. A `pub use` itself imports nothing. For each folder there is a graph whose nodes are
//! its subfolders, each with all that lies below it, and its own files. Three things are measured:
//!
//! - **Siblings.** Subfolders that can reach each other, over subfolders only, are in a cycle.
//! - **Through files.** A subfolder that can reach itself through other subfolders or files of its folder is in a cycle.
//! - **Back up.** An import from a subfolder into a file of the folder above it runs back up if that file reaches the
//!   subfolder.
//!
//! The modules of a [core](CORES) may use each other: below it nothing is counted, and what it imports and what imports it is.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{Fault, tree::Tree},
    Measured,
    imports::{Crossing, Place, crossings},
};

/// The folders whose modules may use each other, because each is a part of one thing.
const CORES: &[(&str, &[&str])] = &[("pintle", &["server", "core"])];

/// A subfolder or a file of one folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node<'a> {
    Folder(&'a str),
    File(&'a str),
}

/// An import between two nodes of one folder.
type Edge<'a> = (Node<'a>, Node<'a>, &'a Crossing<'a>);

/// The number of folders that are in a cycle with a sibling; the offenders are the imports that make it.
pub(super) fn between_siblings(tree: &Tree) -> Measured {
    let mut measured = Measured::default();
    for (krate, crossings) in crossings(tree) {
        for (folder, mut edges) in graphs(krate, &crossings) {
            edges.retain(|(from, to, _)| matches!((from, to), (Node::Folder(_), Node::Folder(_))));
            let circular = circular(&edges);
            measured.value += circular.iter().map(|(from, ..)| *from).collect::<BTreeSet<_>>().len();
            measured.offenders.extend(circular.iter().map(|edge| fault(krate, folder, edge)));
        }
    }
    measured
}

/// The number of folders that are in a cycle, also through files beside them; the offenders are the imports that make it.
pub(super) fn through_files(tree: &Tree) -> Measured {
    let mut measured = Measured::default();
    for (krate, crossings) in crossings(tree) {
        for (folder, edges) in graphs(krate, &crossings) {
            let mut circular = circular(&edges);
            let folders =
                circular.iter().map(|(from, ..)| *from).filter(|from| matches!(from, Node::Folder(_)));
            measured.value += folders.collect::<BTreeSet<_>>().len();
            circular
                .retain(|(from, to, _)| matches!((from, to), (Node::Folder(_), _) | (_, Node::Folder(_))));
            measured.offenders.extend(circular.iter().map(|edge| fault(krate, folder, edge)));
        }
    }
    measured
}

/// The number of imports that run back up.
pub(super) fn back_up(tree: &Tree) -> Measured {
    let mut offenders = Vec::new();
    for (krate, crossings) in crossings(tree) {
        for (folder, edges) in graphs(krate, &crossings) {
            let mut circular = circular(&edges);
            circular.retain(|(from, to, _)| matches!((from, to), (Node::Folder(_), Node::File(_))));
            offenders.extend(circular.iter().map(|edge| fault(krate, folder, edge)));
        }
    }
    Measured { value: offenders.len(), offenders }
}

/// The imports of a crate by the folder that both ends share, without those within a core.
fn graphs<'a>(krate: &str, crossings: &'a [Crossing<'a>]) -> BTreeMap<&'a [&'a str], Vec<Edge<'a>>> {
    let mut graphs: BTreeMap<&[&str], Vec<Edge<'_>>> = BTreeMap::new();
    for crossing in crossings {
        let (from, to) = (&crossing.from, &crossing.to);
        let shared = from.folder.iter().zip(&to.folder).take_while(|(from, to)| from == to).count();
        if CORES.iter().any(|(of, core)| *of == krate && from.folder[..shared].starts_with(core)) {
            continue;
        }
        let node = |place: &'a Place<'a>| {
            place.folder.get(shared).map_or(Node::File(place.file), |name| Node::Folder(name))
        };
        graphs.entry(&from.folder[..shared]).or_default().push((node(from), node(to), crossing));
    }
    graphs
}

/// The edges whose ends reach each other.
fn circular<'a>(edges: &[Edge<'a>]) -> Vec<Edge<'a>> {
    let mut reached: BTreeSet<(Node<'_>, Node<'_>)> =
        edges.iter().map(|(from, to, _)| (*from, *to)).collect();
    loop {
        let further: Vec<_> = reached
            .iter()
            .flat_map(|(from, via)| {
                let steps =
                    reached.range((*via, Node::Folder(""))..).take_while(move |(next, _)| next == via);
                steps.map(|(_, to)| (*from, *to))
            })
            .collect();
        let before = reached.len();
        reached.extend(further);
        if reached.len() == before {
            break;
        }
    }
    edges.iter().filter(|(from, to, _)| reached.contains(&(*to, *from))).copied().collect()
}

fn fault(krate: &str, folder: &[&str], (from, to, crossing): &Edge<'_>) -> Fault {
    let Crossing { source, at, path, .. } = crossing;
    let shown = |node: &Node<'_>| {
        let name = match node {
            Node::Folder(name) => (*name).to_owned(),
            Node::File(name) => format!("{}.rs", name.trim_end_matches(".rs")),
        };
        [&[krate, "src"], folder, &[&name]].concat().join("/")
    };
    Fault::new(&source.path, source.line(*at), format!("`{path}`: {} imports {}", shown(from), shown(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(a: &str, b: &str, c: &str, root: &str) -> Tree {
        Tree::of(&[
            (
                "pintle/src/lib.rs",
                &format!("mod a;\nmod b;\nmod c;\npub use b::B;\npub struct Root;\n{root}"),
            ),
            ("pintle/src/a/mod.rs", "mod deep;"),
            ("pintle/src/a/deep.rs", a),
            ("pintle/src/b/mod.rs", &format!("mod deep;\npub struct B;\n{b}")),
            ("pintle/src/b/deep.rs", ""),
            ("pintle/src/c/mod.rs", &format!("mod deep;\n{c}")),
            ("pintle/src/c/deep.rs", ""),
        ])
    }

    fn siblings(tree: &Tree) -> (usize, Vec<String>) {
        let measured = between_siblings(tree);
        (measured.value, measured.offenders.iter().map(Fault::to_string).collect())
    }

    #[test]
    fn an_import_one_way_is_no_cycle() {
        assert_eq!(siblings(&tree("use crate::b::B;", "", "use crate::b::B;", "")), (0, Vec::new()));
    }

    #[test]
    fn a_cycle_through_a_re_export_is_found() {
        let (value, places) = siblings(&tree("use crate::B;", "use crate::a::deep::A;", "", ""));
        assert_eq!(value, 2);
        assert_eq!(
            places,
            [
                "pintle/src/a/deep.rs:1: `crate::B`: pintle/src/a imports pintle/src/b",
                "pintle/src/b/mod.rs:3: `crate::a::deep::A`: pintle/src/b imports pintle/src/a",
            ]
        );
    }

    #[test]
    fn a_cycle_of_three_is_found() {
        let round = tree("use crate::b::B;", "use crate::c::C;", "use crate::a::deep::A;", "");
        assert_eq!(siblings(&round).0, 3);
    }

    #[test]
    fn a_cycle_through_a_file_is_found() {
        let through = tree("use crate::Root;", "", "", "fn f() { a::deep::f() }");
        assert_eq!(siblings(&through).0, 0);
        assert_eq!(through_files(&through).value, 1);
        assert_eq!(through_files(&tree("use crate::Root;", "", "", "fn f() { c::deep::f() }")).value, 0);
    }

    #[test]
    fn modules_of_a_core_may_use_each_other_and_it_is_in_no_cycle_with_others() {
        let tree = |core: &str, around: &str| {
            Tree::of(&[
                ("pintle/src/lib.rs", "mod server;"),
                ("pintle/src/server/mod.rs", "mod core;\nmod http;"),
                ("pintle/src/server/core/mod.rs", "mod a;\nmod b;\nstruct Core;"),
                ("pintle/src/server/core/a/mod.rs", "mod deep;\nuse super::b::B;\nstruct A;"),
                ("pintle/src/server/core/a/deep.rs", ""),
                ("pintle/src/server/core/b/mod.rs", &format!("use super::a::A;\nuse super::Core;\n{core}")),
                ("pintle/src/server/http/mod.rs", &format!("mod deep;\n{around}")),
                ("pintle/src/server/http/deep.rs", ""),
            ])
        };
        let around = "use crate::server::core::a::A;\nstruct Http;";
        let (alone, both) = (tree("", around), tree("use crate::server::http::Http;", around));
        assert_eq!((siblings(&alone).0, through_files(&alone).value, back_up(&alone).value), (0, 0, 0));
        assert_eq!((siblings(&both).0, through_files(&both).value), (2, 2));
    }

    #[test]
    fn imports_back_up_count_where_the_parent_uses_the_folder() {
        let back = |root: &str| back_up(&tree("use crate::Root;", "", "", root)).value;
        assert_eq!(back("use b::deep::X;"), 0);
        assert_eq!(back("pub use a::deep::A;"), 0);
        assert_eq!(back("use a::deep::A;"), 1);
        assert_eq!(back("fn f() { a::deep::f() }"), 1);
        assert_eq!(back("use c::deep::C;"), 0);
    }

    #[test]
    fn a_file_that_does_not_reach_the_folder_may_be_imported_from_it() {
        let tree = Tree::of(&[
            ("pintle/src/lib.rs", "mod a;\nmod error;\nmod other;"),
            ("pintle/src/error.rs", "pub struct Error;"),
            ("pintle/src/other.rs", "use crate::a::deep::A;\npub struct Other;"),
            ("pintle/src/a/mod.rs", "mod deep;"),
            ("pintle/src/a/deep.rs", "use crate::error::Error;\nuse crate::other::Other;"),
        ]);
        let found: Vec<String> = back_up(&tree).offenders.iter().map(Fault::to_string).collect();
        assert_eq!(
            found,
            ["pintle/src/a/deep.rs:2: `crate::other::Other`: pintle/src/a imports pintle/src/other.rs"]
        );
    }
}
