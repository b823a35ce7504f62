use pintle_types::schema::{ReadResourceResult, Resource};

use crate::{
    directory::{Directory, ReadError},
    server::{Cx, PageRequest, RequestError, ResourcePage, ResourceSource},
};

/// Files are listed and read by threads that may wait.
impl ResourceSource for Directory {
    async fn list(&self, _: Cx, _: PageRequest) -> Result<ResourcePage, RequestError> {
        let directory = self.clone();
        let listed = tokio::task::spawn_blocking(move || directory.resources()).await?;
        listed.map(ResourcePage::new).map_err(|error| {
            tracing::warn!(%error, "a directory cannot be listed");
            RequestError::new("the directory cannot be listed: see the server's log")
        })
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        self.described(uri)
    }

    async fn read(&self, _: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
        let directory = self.clone();
        match tokio::task::spawn_blocking(move || directory.read(&uri)).await? {
            Ok(contents) => Ok(ReadResourceResult::new(vec![contents])),
            Err(ReadError::NotFound { .. }) => Err(RequestError::not_found()),
            Err(error @ ReadError::TooLarge { .. }) => Err(RequestError::new(error.to_string())),
            Err(error) => {
                tracing::warn!(%error, "a file cannot be read");
                Err(RequestError::new("the file cannot be read: see the server's log"))
            }
        }
    }
}
