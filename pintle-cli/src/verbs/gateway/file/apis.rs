use std::{fs, path::Path};

use pintle_serve::written_by_others;

use super::{BackendEntry, GatewayFile};
use crate::{
    failure::Failure,
    verbs::gateway::api::{ApiEntry, LoadedApi, OpenFailure},
};

impl GatewayFile {
    /// Reads the document of an API in a folder, unless it has not changed since `known` was read.
    pub(super) fn load(
        &mut self,
        name: &str,
        folder: &Path,
        known: Option<&Self>,
    ) -> Result<(), OpenFailure> {
        let Some(entry) = self.apis.get(name) else { return Ok(()) };
        let known = known.filter(|known| {
            let secrets = entry.secrets().into_iter().map(|(_, value)| value);
            known.apis.get(name) == Some(entry) && self.secret_files.are_same(&known.secret_files, secrets)
        });
        let known = known.and_then(|known| known.loaded.get(name)).filter(|known| !known.has_changed());
        let loaded = match known {
            Some(known) => known.clone(),
            None => LoadedApi::load(name, entry, folder)?,
        };
        for path in loaded.paths() {
            // What is not there is a fault of the document already.
            let remedy = fs::metadata(path).ok().and_then(|metadata| written_by_others(&metadata));
            if let Some(remedy) = remedy {
                let shown = path.display();
                let message = format!("others than you may write `{shown}`: `{remedy} {shown}`");
                return Err(OpenFailure::Entry(message));
            }
        }
        self.loaded.insert(name.to_owned(), loaded);
        Ok(())
    }

    /// Adds an API whose path is relative to the current directory.
    pub(super) fn add_api(
        &mut self,
        name: &str,
        entry: ApiEntry,
        known: Option<&Self>,
    ) -> Result<(), Failure> {
        let wrong = |message: String| Failure::usage(message, "pintle serve --openapi api.yaml");
        if self.backend(name).is_some() {
            return Err(wrong(format!("the file has a target or an API `{name}` already: rename that")));
        }
        self.apis.insert(name.to_owned(), entry);
        self.order.push(name.to_owned());
        let loaded = match self.fault() {
            Some(fault) => Err(OpenFailure::Entry(fault.message)),
            None => self.load(name, Path::new(""), known),
        };
        loaded.map_err(|failure| match failure {
            OpenFailure::Secret(failure) => failure,
            OpenFailure::Entry(message) => wrong(message),
        })
    }

    /// Returns the target or the API of a name.
    pub(in crate::verbs::gateway) fn backend(&self, name: &str) -> Option<BackendEntry<'_>> {
        let api = || Some(BackendEntry::Api(self.apis.get(name)?, self.loaded.get(name)));
        self.targets.get(name).map(BackendEntry::Target).or_else(api)
    }

    /// Returns the targets and the APIs with their names.
    pub(in crate::verbs::gateway) fn backends(&self) -> impl Iterator<Item = (&String, BackendEntry<'_>)> {
        self.order.iter().filter_map(|name| Some((name, self.backend(name)?)))
    }
}
