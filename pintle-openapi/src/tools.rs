use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use pintle::{
    server::{
        Cx, ListKind, Lookup, Outcome, PageRequest, ProvidedEntry, Provider, ProviderInfo, ProviderPage,
        ReportPart, RequestError, Scope, Target,
    },
    types::{
        JsonObject, RawObject, RpcError,
        schema::{
            CallToolResult, ContentBlock, ReadResourceResult, Resource, ResourceTemplate,
            ResourcesCapability, ServerCapabilities, Tool, ToolsCapability,
        },
    },
};

use pintle_oauth::client::BearerTokens;

use crate::{
    PlannedRequest,
    call::{ApiCall, CallError},
    client::ApiClient,
    resources::ApiResources,
    tool::ApiTool,
};

/// The tools of an API, for [`Server::provider`](pintle::Server::provider). A clone has the same.
///
/// [`OpenApi::build`](crate::OpenApi::build) makes it.
#[derive(Clone)]
pub struct ApiTools {
    inner: Arc<BuiltTools>,
    /// The tokens of the caller that the tools are for.
    caller: Option<BearerTokens>,
}

/// The tools and resources of a document, and the notes about it.
pub(crate) struct BuiltTools {
    pub(crate) name: String,
    /// The number of each tool by its name, and its entry, whose copies share the definition.
    pub(crate) entries: HashMap<String, (usize, ProvidedEntry)>,
    pub(crate) tools: Vec<ApiTool>,
    pub(crate) resources: ApiResources,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) warnings: Vec<String>,
    pub(crate) client: ApiClient,
    /// The tools as lists have them, printed for the first of these.
    pub(crate) printed: OnceLock<Vec<RawObject>>,
}

/// An operation that is no tool.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftOut {
    /// The method and the path.
    pub operation: String,
    /// Why its requests cannot be made.
    pub reason: String,
}

impl ApiTools {
    pub(crate) fn new(built: BuiltTools) -> Self {
        Self { inner: Arc::new(built), caller: None }
    }

    /// Returns the same tools for a caller, whose tokens are sent in `Authorization`, in place of what the document wants there.
    ///
    /// They are sent to the origin of [`base`](crate::OpenApi::base) only. Operations at other servers cannot be called.
    pub fn for_caller(&self, tokens: BearerTokens) -> Self {
        Self { inner: self.inner.clone(), caller: Some(tokens) }
    }

    /// Returns the tools, in the order of the document.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.inner.tools.iter().map(|tool| &tool.tool)
    }

    /// Returns the resources that are read without arguments.
    pub fn resources(&self) -> &[Resource] {
        &self.inner.resources.resources
    }

    /// Returns the templates of the resources that are read with arguments.
    pub fn templates(&self) -> &[ResourceTemplate] {
        &self.inner.resources.templates
    }

    /// Returns the method and the path that a tool calls.
    pub fn operation(&self, tool: &str) -> Option<&str> {
        self.find_tool(tool).map(|tool| tool.key.as_str())
    }

    /// Returns the operations that are no tools, with the reasons. Those that the program excluded are not among them.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.inner.left_out
    }

    /// Returns what was ignored in the document, and what is better changed.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// Returns the request that a call of a tool would send, without its secrets; `None` if there is no tool of this name.
    ///
    /// # Errors
    ///
    /// The call would be refused with these arguments. The reason names the argument.
    pub fn plan(&self, tool: &str, arguments: &JsonObject) -> Option<Result<PlannedRequest, String>> {
        let tool = self.find_tool(tool)?;
        let headers = &self.inner.client.headers;
        Some(tool.check(arguments).and_then(|()| tool.plan.planned(arguments, headers)))
    }

    fn call<'a>(&'a self, tool: &'a ApiTool) -> ApiCall<'a> {
        ApiCall { tool, client: &self.inner.client, caller: self.caller.as_ref() }
    }

    async fn read(&self, uri: &str) -> Outcome {
        let Some((tool, arguments)) = self.inner.resources.operation(uri) else {
            return Outcome::NotFound { uri: uri.to_owned() };
        };
        let contents = match self.call(tool).contents(&arguments, uri).await {
            Ok(contents) => contents,
            Err(CallError::Arguments(reason)) => return Outcome::Failed(RpcError::invalid_params(reason)),
            Err(CallError::Failed(reason)) => return Outcome::Failed(RpcError::internal(reason)),
        };
        complete(ReadResourceResult::new(vec![contents]).to_raw())
    }

    fn find_tool(&self, name: &str) -> Option<&ApiTool> {
        self.inner.entries.get(name).and_then(|(number, _)| self.inner.tools.get(*number))
    }
}

fn complete(result: serde_json::Result<RawObject>) -> Outcome {
    match result {
        Ok(result) => Outcome::Complete(result.into()),
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
    }
}

impl Provider for ApiTools {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        let has_resources = !(self.resources().is_empty() && self.templates().is_empty());
        capabilities.resources = has_resources.then(ResourcesCapability::default);
        let mut info = ProviderInfo::new(&self.inner.name, capabilities);
        info.may_require = false;
        info
    }

    async fn list(&self, _: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        if page.is_refresh() {
            return Ok(ProviderPage::default());
        }
        let resources;
        let printed = match (list, self.inner.printed.get()) {
            (ListKind::Tools, Some(printed)) => printed,
            (ListKind::Tools, None) => {
                let printed = ProviderPage::of(self.tools())?.entries;
                self.inner.printed.get_or_init(|| printed)
            }
            _ => {
                resources = match list {
                    ListKind::Resources => ProviderPage::of(self.resources())?.entries,
                    ListKind::Templates => ProviderPage::of(self.templates())?.entries,
                    _ => Vec::new(),
                };
                &resources
            }
        };
        let from = page.cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
        let end = printed.len().min(page.limit.max(1).saturating_add(from));
        let entries = ProviderPage::new(printed.get(from..end).unwrap_or_default().to_vec());
        Ok(if end < printed.len() { entries.next(end.to_string()) } else { entries })
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        match target {
            Target::Tool(name) => self.inner.entries.get(&**name).map(|(_, entry)| entry.clone()).into(),
            target => self.inner.resources.find(target).into(),
        }
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        let target = cx.target();
        if let Some(Target::Resource(uri)) = &target {
            return self.read(uri).await;
        }
        let Some(tool) = target.as_ref().and_then(|target| self.find_tool(target.name())) else {
            return Outcome::Failed(RpcError::invalid_params("there is no such tool; list them"));
        };
        let arguments = match cx.params().decode_member::<JsonObject>("arguments") {
            Ok(arguments) => arguments.unwrap_or_default(),
            Err(error) => return Outcome::BadArguments(format!("the arguments are not an object: {error}")),
        };
        let result = match self.call(tool).result(&arguments).await {
            Ok(result) => result,
            Err(CallError::Arguments(reason)) => return Outcome::BadArguments(reason),
            Err(CallError::Failed(reason)) => {
                let mut result = CallToolResult::new(vec![ContentBlock::text(reason)]);
                result.is_error = Some(true);
                result
            }
        };
        complete(result.to_raw())
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        match part {
            ReportPart::Names(ListKind::Tools) => self.inner.entries.keys().cloned().collect(),
            ReportPart::Warnings => {
                let left_out = self.left_out().iter();
                let left_out = left_out.map(|one| format!("`{}` is left out: {}", one.operation, one.reason));
                left_out.chain(self.warnings().iter().cloned()).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Debug for ApiTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools().map(|tool| &tool.name).collect();
        f.debug_struct("ApiTools")
            .field("name", &self.inner.name)
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}
