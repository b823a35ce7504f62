use std::sync::{Arc, PoisonError, RwLock};

use pintle::{
    directory::Directory,
    server::{Cx, PageRequest, RequestError, ResourcePage, ResourceSource},
    types::schema::{ReadResourceResult, Resource},
};

/// Folders whose files are resources, and which can be replaced while a server runs.
///
/// Copies are the same folders: one is given to [`Server::source`](pintle::Server::source), the other one replaces them.
#[derive(Clone, Debug, Default)]
pub struct ServedFolders(Arc<RwLock<Arc<[Directory]>>>);

impl ServedFolders {
    /// Replaces the folders. [`Server::resources_changed`](pintle::Server::resources_changed) notifies clients.
    pub fn replace(&self, folders: &[Directory]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = folders.into();
    }

    /// Lists the files of all folders. It blocks.
    pub fn resources(&self) -> Vec<Resource> {
        let resources = |folder: &Directory| {
            folder.resources().unwrap_or_else(|error| {
                tracing::warn!(%error, "a folder cannot be listed");
                Vec::new()
            })
        };
        self.all().iter().flat_map(resources).collect()
    }

    fn all(&self) -> Arc<[Directory]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn of(&self, uri: &str) -> Option<Directory> {
        self.all().iter().find(|folder| folder.covers(uri)).cloned()
    }
}

impl ResourceSource for ServedFolders {
    async fn list(&self, _: Cx, _: PageRequest) -> Result<ResourcePage, RequestError> {
        let folders = self.clone();
        Ok(ResourcePage::new(tokio::task::spawn_blocking(move || folders.resources()).await?))
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        self.of(uri)?.describe(uri)
    }

    async fn read(&self, cx: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
        match self.of(&uri) {
            Some(folder) => ResourceSource::read(&folder, cx, uri).await,
            None => Err(RequestError::not_found()),
        }
    }
}
