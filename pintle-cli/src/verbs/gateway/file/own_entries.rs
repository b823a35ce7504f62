use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use pintle::{Server, server::PromptRoute};
use pintle_serve::{ServedFolders, ServedResources, ServedTools, ServedWorkers};
use pintle_tasks::Tasks;
use tokio::task::spawn_blocking;

use crate::supervisor::Supervisor;

/// The entries of a file itself, beside those of its targets.
pub(in crate::verbs::gateway) struct OwnEntries {
    workers: ServedWorkers,
    tools: ServedTools,
    prompts: Vec<PromptRoute>,
    resources: Arc<ServedResources>,
}

impl OwnEntries {
    pub(super) fn new(
        workers: ServedWorkers,
        tools: ServedTools,
        prompts: Vec<PromptRoute>,
        resources: ServedResources,
    ) -> Self {
        Self { workers, tools, prompts, resources: Arc::new(resources) }
    }

    /// Returns the workers whose functions are tools.
    pub(in crate::verbs::gateway) fn workers(&self) -> &ServedWorkers {
        &self.workers
    }

    /// Has tools know the calls of those that they replace.
    pub(in crate::verbs::gateway) fn keeping(mut self, running: &Self) -> Self {
        self.tools = self.tools.keeping(&running.tools);
        self
    }

    /// Has the programs of tools ended if this process is killed.
    pub(in crate::verbs::gateway) fn supervised_by(mut self, supervisor: &Supervisor) -> Self {
        self.tools = self.tools.on_start(supervisor.watcher());
        self
    }

    /// Registers the entries with a server that has not started.
    pub(in crate::verbs::gateway) fn register(&self, server: Server, folders: &ServedFolders) -> Server {
        folders.replace(self.resources.folders());
        let server = if self.tools.have_tasks() { server.with(Tasks::new()) } else { server };
        let server = self.tools.routes().into_iter().fold(server, Server::tool);
        let server = self.prompts.iter().cloned().fold(server, Server::prompt);
        let server = self.resources.routes().into_iter().fold(server, Server::resource);
        let server = self.resources.templates().into_iter().fold(server, Server::template);
        match self.resources.folders().is_empty() {
            true => server,
            false => server.source(folders.clone()),
        }
    }

    /// Replaces the entries of a server that runs. What is wrong stays as it was.
    pub(in crate::verbs::gateway) fn replace(
        &self,
        server: &Server,
        folders: &ServedFolders,
    ) -> Result<(), pintle::Error> {
        server.replace_tools(self.tools.routes())?;
        server.replace_prompts(self.prompts.clone())?;
        server.replace_resources(self.resources.routes())?;
        server.replace_templates(self.resources.templates())?;
        folders.replace(self.resources.folders());
        server.resources_changed();
        Ok(())
    }
}

/// The files that are resources, and their states.
pub(in crate::verbs::gateway) struct WatchedFiles {
    resources: Arc<ServedResources>,
    folders: ServedFolders,
    /// The states of the files by their URIs.
    states: BTreeMap<String, String>,
}

impl WatchedFiles {
    /// Looks at the files. It blocks.
    pub(in crate::verbs::gateway) fn new(entries: &OwnEntries, folders: &ServedFolders) -> Self {
        let states = states(&entries.resources, folders);
        Self { resources: entries.resources.clone(), folders: folders.clone(), states }
    }

    /// Notifies clients of files that have changed since the last call.
    pub(in crate::verbs::gateway) async fn notify(&mut self, server: &Server) {
        let (resources, folders) = (self.resources.clone(), self.folders.clone());
        let Ok(states) = spawn_blocking(move || states(&resources, &folders)).await else { return };
        let changed = states.iter();
        let changed =
            changed.filter(|(uri, state)| self.states.get(*uri).is_some_and(|before| before != *state));
        changed.for_each(|(uri, _)| server.resource_updated(&**uri));
        if !states.keys().eq(self.states.keys()) {
            server.resources_changed();
        }
        self.states = states;
    }
}

fn states(resources: &ServedResources, folders: &ServedFolders) -> BTreeMap<String, String> {
    let listed = folders.resources().into_iter().map(|resource| {
        let modified = resource.annotations.and_then(|annotations| annotations.last_modified);
        (resource.uri, format!("{:?} {modified:?}", resource.size))
    });
    let single = resources.files().map(|(uri, path)| {
        let state =
            path.metadata().map(|file| (file.len(), file.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
        (uri.to_owned(), format!("{state:?}"))
    });
    single.chain(listed).collect()
}
