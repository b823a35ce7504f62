use pintle::{
    Connection,
    types::schema::{Prompt, Resource, ResourceTemplate, Tool},
};

/// The lists of a server, each fetched when it is needed. One that the server does not have is empty.
#[derive(Debug, Default)]
pub(super) struct CachedLists {
    tools: Option<Vec<Tool>>,
    prompts: Option<Vec<Prompt>>,
    resources: Option<Vec<Resource>>,
    templates: Option<Vec<ResourceTemplate>>,
}

impl CachedLists {
    pub(super) async fn tools(&mut self, connection: &Connection) -> &[Tool] {
        if self.tools.is_none() {
            self.tools = connection.tools().await.ok();
        }
        self.tools.as_deref().unwrap_or_default()
    }

    pub(super) async fn prompts(&mut self, connection: &Connection) -> &[Prompt] {
        if self.prompts.is_none() {
            self.prompts = connection.prompts().await.ok();
        }
        self.prompts.as_deref().unwrap_or_default()
    }

    pub(super) async fn resources(&mut self, connection: &Connection) -> &[Resource] {
        if self.resources.is_none() {
            self.resources = connection.resources().await.ok();
        }
        self.resources.as_deref().unwrap_or_default()
    }

    pub(super) async fn templates(&mut self, connection: &Connection) -> &[ResourceTemplate] {
        if self.templates.is_none() {
            self.templates = connection.resource_templates().await.ok();
        }
        self.templates.as_deref().unwrap_or_default()
    }
}
