//! The map of the project: `ARCHITECTURE.md` and what else names parts of the code. All of it must be there and true.

pub(super) mod crates;
pub(super) mod features;
pub(super) mod references;
pub(super) mod rooms;
mod table;

use super::{Fault, tree::Tree};

pub(super) const PAGE: &str = "ARCHITECTURE.md";
const MAX_WORDS: usize = 2500;

/// The page must be short enough to be read at once.
pub(super) fn check_length(tree: &Tree) -> Vec<Fault> {
    let words = tree.text(PAGE).split_whitespace().count();
    let what =
        format!("{words} words, of at most {MAX_WORDS}; move details to the `//!` comment of their module");
    (words > MAX_WORDS).then(|| Fault::new(PAGE, 0, what)).into_iter().collect()
}
