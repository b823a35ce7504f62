use std::future::ready;

use pintle::{
    server::{
        Cx, ListKind, Lookup, Notice, Outcome, PageRequest, Provider, ProviderChanges, ProviderInfo,
        ProviderPage, ProviderSubscription, RequestError, Scope, Target, Watch, WatchFuture,
    },
    types::{
        JsonObject, RawObject,
        schema::{ServerCapabilities, ServerTasksCapability, Tool, ToolsCapability},
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A provider with one tool, `task`, that says what it wants of tasks: of its own and of others.
pub(crate) struct TaskProvider {
    name: &'static str,
    answer: Box<Answering>,
    notified: Option<watch::Receiver<Option<String>>>,
}

type Answering = dyn Fn(&str, &Value) -> Value + Send + Sync;

impl TaskProvider {
    /// A provider that answers requests by their method and params.
    pub(crate) fn new(
        name: &'static str,
        answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self { name, answer: Box::new(answer), notified: None }
    }

    /// Has it grant every task, and tell its server of these.
    pub(crate) fn telling(mut self, notified: watch::Receiver<Option<String>>) -> Self {
        self.notified = Some(notified);
        self
    }
}

impl Provider for TaskProvider {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        // It does not say that it lists them.
        capabilities.tasks = Some(ServerTasksCapability::new());
        capabilities.extensions = json!({"io.modelcontextprotocol/tasks": {}}).as_object().cloned();
        let mut info = ProviderInfo::new(self.name, capabilities);
        info.handles_any_method = true;
        info
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        ProviderPage::of([Tool::new("task", JsonObject::new())])
    }

    fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
        (target.name() == "task").then(|| Tool::new("task", JsonObject::new())).into()
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        let params: Value = cx.params().decode().unwrap();
        let result = (self.answer)(cx.method(), &params);
        Outcome::Complete(result.to_string().parse::<RawObject>().unwrap().into())
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for TaskProvider {
    fn attach(&self, changes: ProviderChanges) {
        let Some(mut notified) = self.notified.clone() else { return };
        tokio::spawn(async move {
            while notified.changed().await.is_ok() {
                let id = notified.borrow_and_update().clone().unwrap_or_default();
                let params = json!({"status": "working", "statusMessage": "told"});
                changes.tell(Notice::new("taskIds", "notifications/tasks", params).about_task(id));
            }
        });
    }

    fn subscribe(
        &self,
        cx: Cx,
        _: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        let mut subscription = ProviderSubscription::new();
        if self.notified.is_some() {
            let params: Value = cx.params().decode().unwrap_or_default();
            let ids = params["notifications"]["taskIds"].as_array().into_iter().flatten();
            // Those that it was asked for, and one of another server.
            ids.filter_map(Value::as_str).chain(["t-1"]).for_each(|id| subscription.grant_task(id));
        }
        Box::pin(ready(Ok(subscription)))
    }
}
