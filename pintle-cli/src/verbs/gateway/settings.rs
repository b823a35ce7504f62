use std::sync::{Arc, PoisonError};

use pintle::{Server, types::schema::Implementation};

use super::{
    file::{AdminEntry, GatewayFile},
    protection::AuthEntry,
    running::Gateway,
};
use crate::listen::{ENDPOINT, Routes};

/// The settings of a file that its servers have in common.
pub(super) struct GatewaySettings {
    pub(super) name: String,
    pub(super) instructions: Option<String>,
    /// Whether tools are searched in place of listed.
    pub(super) search: bool,
    pub(super) admin: AdminEntry,
    /// The check of tokens that is in use, which may not be that of the file.
    pub(super) auth: Option<AuthEntry>,
}

impl GatewaySettings {
    pub(super) fn of(file: &GatewayFile) -> Self {
        Self {
            name: file.name.clone().unwrap_or_else(|| "pintle-gateway".to_owned()),
            instructions: file.instructions.clone(),
            search: file.search,
            admin: file.admin.clone(),
            auth: file.auth.clone(),
        }
    }
}

impl Gateway {
    pub(super) fn settings(&self) -> Arc<GatewaySettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether a file has the tokens of clients checked in another way than now, which names the same principals.
    pub(super) fn has_other_check(&self, next: &GatewayFile) -> bool {
        let settings = self.settings();
        let both = settings.auth.as_ref().zip(next.auth.as_ref());
        both.is_some_and(|(current, next)| current != next && current.names_like(next))
    }

    /// Applies the settings of a changed file that servers have in common.
    pub(super) async fn apply_settings(&self, next: &GatewayFile, routes: Option<&Routes>) {
        let (before, mut settings) = (self.settings(), GatewaySettings::of(next));
        if !self.has_other_check(next) {
            settings.auth.clone_from(&before.auth);
        }
        // The server on standard streams is the one that was chosen.
        settings.search = if routes.is_some() { next.search } else { before.search };
        let is_other_search = before.search != settings.search;
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        if let Some(routes) = routes.filter(|_| is_other_search) {
            self.report(ENDPOINT, self.serve(routes, ENDPOINT, &self.whole_server()).await);
        }
    }

    /// Has the servers say the name and the instructions of a changed file, to clients that connect from now on.
    pub(super) fn rename_servers(&self, next: &GatewayFile) {
        let settings = self.settings();
        let rename = |server: &Server, instructions: Option<&str>| {
            let info = Implementation::new(&settings.name, env!("CARGO_PKG_VERSION"));
            drop(server.clone().info(info).instructions(instructions.unwrap_or_default()));
        };
        let common = settings.instructions.as_deref();
        rename(&self.gates.own, None);
        rename(&self.server, common);
        for (path, server) in self.fronts().iter() {
            let name = path.strip_prefix(ENDPOINT).and_then(|rest| rest.strip_prefix('/'));
            let entry = name.and_then(|name| next.servers.get(name));
            rename(
                server,
                match name {
                    // The server that is searched has them.
                    None if settings.search => None,
                    _ => entry.and_then(|entry| entry.instructions.as_deref()).or(common),
                },
            );
        }
    }
}
