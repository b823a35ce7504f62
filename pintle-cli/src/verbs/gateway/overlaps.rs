use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pintle::server::{ListKind, Provider as _, ReportPart};

use super::{
    backend::{Backend, shown},
    running::Gateway,
};

/// The limit of names that are reported at once.
const MAX_REPORTED: usize = 16;

const EXTENSION: &str = "the extension";

/// The names that two targets offer, of which those of the first are used. Each is reported once.
#[derive(Debug, Default)]
pub(super) struct Overlaps(HashSet<String>);

impl Overlaps {
    /// Prints those that were not printed before.
    pub(super) fn warn(&mut self, gateway: &Gateway) {
        for overlap in gateway.overlaps() {
            if self.0.len() < 1_000 && self.0.insert(overlap.clone()) {
                gateway.output.warning(overlap);
            }
        }
    }
}

impl Gateway {
    /// Returns what two targets that are connected offer both, with their names.
    pub(super) fn overlaps(&self) -> Vec<String> {
        let (mut owners, mut found) = (HashMap::<String, String>::new(), Vec::new());
        for backend in self.backends().iter().filter(|backend| backend.is_up()) {
            for name in offered(backend) {
                match owners.get(&name) {
                    Some(first) if first != Backend::name(backend) && found.len() < MAX_REPORTED => {
                        let (name, second) = (shown(&name), Backend::name(backend));
                        let result = match name.starts_with(EXTENSION) {
                            true => "its methods are refused: choose one in `[extensions]`".to_owned(),
                            false => format!("that of `{first}` is used, which is the first in the file"),
                        };
                        found.push(format!("`{first}` and `{second}` both offer {name}: {result}"));
                    }
                    Some(_) => {}
                    None => drop(owners.insert(name, Backend::name(backend).to_owned())),
                }
            }
        }
        found
    }
}

/// Returns the entries and the extensions of a target, as far as they are known.
fn offered(backend: &Arc<Backend>) -> Vec<String> {
    let extensions = backend.info(None).capabilities.extensions.into_iter().flatten();
    let mut names: Vec<_> = extensions.map(|(name, _)| format!("{EXTENSION} `{name}`")).collect();
    for (list, kind) in [
        (ListKind::Tools, "tool"),
        (ListKind::Prompts, "prompt"),
        (ListKind::Resources, "resource"),
        (ListKind::Templates, "template"),
    ] {
        names.extend(
            backend.report(ReportPart::Names(list)).into_iter().map(|name| format!("the {kind} `{name}`")),
        );
    }
    names.sort_unstable();
    names
}
