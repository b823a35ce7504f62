use std::collections::HashMap;

use super::{
    Provider,
    info::ReportPart,
    registry::{Providers, RegisteredProvider},
};
use crate::server::{
    ListKind,
    core::catalogue::{Catalogue, options::CatalogueRoute},
    ordered_map::OrderedMap,
};

/// The number of conflicts that are reported. The others show when these are resolved.
const MAX_CONFLICTS: usize = 16;

/// The routes and the providers of a server.
#[derive(Clone, Copy)]
pub(crate) struct Offered<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) providers: &'a Providers,
}

impl Offered<'_> {
    /// Returns the errors of the providers, and the names that two of them, or one of them and the server, have. What a server behind
    /// offers is known while this one runs, and is no fault of it: the first of a name is used.
    pub(crate) fn faults(self) -> Vec<String> {
        let failed = self.providers.iter().filter_map(|known| {
            let faults = known.provider.report(ReportPart::Faults);
            (!faults.is_empty()).then(|| format!("`{}`: {}", known.info.name, faults.join("\n")))
        });
        failed.chain(self.conflicts_of(|known| !known.info.handles_any_method)).collect()
    }

    /// Returns the names that two providers, or one of them and the server, have.
    pub(crate) fn conflicts(self) -> Vec<String> {
        self.conflicts_of(|_| true)
    }

    fn conflicts_of(self, is_compared: impl Fn(&RegisteredProvider) -> bool) -> Vec<String> {
        let mut conflicts = Vec::new();
        for list in ListKind::ALL {
            let mut owners = self.own_names(list);
            for known in self.providers.iter().filter(|known| is_compared(known)) {
                let owner = format!("`{}`", known.info.name);
                for name in known.provider.report(ReportPart::Names(list)) {
                    if let Some(first) = owners.get(&name).filter(|first| **first != owner) {
                        conflicts.push(conflict(list, &name, first, &owner));
                    }
                    if conflicts.len() >= MAX_CONFLICTS {
                        return conflicts;
                    }
                    owners.entry(name).or_insert_with(|| owner.clone());
                }
            }
        }
        conflicts
    }

    /// Returns the names that another provider and this server, or one of its providers, have.
    pub(crate) fn conflicts_with(self, provider: &impl Provider) -> Vec<String> {
        let mut conflicts = Vec::new();
        for list in ListKind::ALL {
            let mut owners = self.own_names(list);
            for known in self.providers.iter() {
                let owner = format!("`{}`", known.info.name);
                owners.extend(
                    known
                        .provider
                        .report(ReportPart::Names(list))
                        .into_iter()
                        .map(|name| (name, owner.clone())),
                );
            }
            let names = Provider::report(provider, ReportPart::Names(list));
            let owner = format!("`{}`", Provider::info(provider, None).name);
            let met = names.iter().filter_map(|name| Some(conflict(list, name, owners.get(name)?, &owner)));
            conflicts.extend(met.take(MAX_CONFLICTS));
        }
        conflicts
    }

    /// Returns the names of the routes of the server, with their owner.
    fn own_names(self, list: ListKind) -> HashMap<String, String> {
        let owner = || "the server itself".to_owned();
        self.route_names(list).into_iter().map(|name| (name, owner())).collect()
    }

    /// Returns the names, URIs or URI templates of the routes of the server.
    pub(crate) fn route_names(self, list: ListKind) -> Vec<String> {
        fn keys<R: CatalogueRoute>(routes: &OrderedMap<R>) -> Vec<String> {
            routes.iter().map(|route| route.key().to_owned()).collect()
        }
        match list {
            ListKind::Tools => keys(&self.catalogue.tools),
            ListKind::Prompts => keys(&self.catalogue.prompts),
            ListKind::Resources => keys(&self.catalogue.resources),
            ListKind::Templates => keys(&self.catalogue.templates),
        }
    }
}

fn conflict(list: ListKind, name: &str, first: &str, second: &str) -> String {
    let kind = match list {
        ListKind::Tools => "tools are named",
        ListKind::Prompts => "prompts are named",
        ListKind::Resources => "resources have the URI",
        ListKind::Templates => "resource templates have the URI template",
    };
    format!(
        "two {kind} `{name}`, one of {first} and one of {second}; rename one, or mount it with another prefix"
    )
}
