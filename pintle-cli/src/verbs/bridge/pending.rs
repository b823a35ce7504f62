use std::sync::{Arc, Mutex, PoisonError};

use pintle::{
    Server,
    server::{
        Cx, ListKind, Lookup, Outcome, PageRequest, ProvidedEntry, Provider, ProviderInfo, ProviderPage,
        RequestError, Scope, Target,
    },
    types::{
        RpcError,
        schema::{PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability},
    },
};
use tokio::sync::Notify;

use crate::auth::BackgroundLogin;

/// The target of a bridge before its user has logged in: a provider whose every request fails with what to do.
#[derive(Clone, Debug)]
pub(super) struct PendingTarget(Arc<PendingInner>);

#[derive(Debug)]
struct PendingInner {
    label: String,
    login: BackgroundLogin,
    state: Mutex<PendingState>,
    /// A client has called, and no login is waiting.
    called: Notify,
}

#[derive(Debug)]
enum PendingState {
    /// The reason why the last attempt to connect failed, if there was one.
    Unconnected(Option<String>),
    Connected,
}

impl PendingTarget {
    pub(super) fn new(label: String, login: BackgroundLogin) -> Self {
        let state = Mutex::new(PendingState::Unconnected(None));
        Self(Arc::new(PendingInner { label, login, state, called: Notify::new() }))
    }

    /// Returns a server that has nothing but this.
    pub(super) fn server(&self) -> Server {
        let server = Server::new(&self.0.label, env!("CARGO_PKG_VERSION")).provider(self.clone());
        match self.0.login.waiting() {
            Some(waiting) => server.instructions(waiting),
            None => server,
        }
    }

    /// Waits until it is worth trying to connect: a login has succeeded, or a client has called and none is waiting.
    pub(super) async fn wanted(&self) {
        let login = &self.0.login;
        loop {
            let ended = login.ended();
            tokio::select! {
                () = ended => if login.has_tokens().await { return },
                () = self.0.called.notified() => return,
            }
        }
    }

    /// Stops answering: another provider does.
    pub(super) fn set_connected(&self) {
        self.set(PendingState::Connected);
    }

    pub(super) fn set_failed(&self, reason: String) {
        self.set(PendingState::Unconnected(Some(reason)));
    }

    fn set(&self, state: PendingState) {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Returns the error of a request; `None` if another provider answers.
    fn error(&self) -> Option<RpcError> {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let PendingState::Unconnected(reason) = &*state else { return None };
        if let Some(waiting) = self.0.login.waiting() {
            return Some(RpcError::internal(waiting));
        }
        self.0.called.notify_one();
        let label = &self.0.label;
        Some(RpcError::internal(match reason {
            Some(reason) => format!("`{label}` cannot be used: {reason}; call again"),
            None => format!("`{label}` is being connected to; call again"),
        }))
    }
}

impl Provider for PendingTarget {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools.insert(ToolsCapability::default()).list_changed = Some(true);
        capabilities.prompts.insert(PromptsCapability::default()).list_changed = Some(true);
        let resources = capabilities.resources.insert(ResourcesCapability::default());
        (resources.list_changed, resources.subscribe) = (Some(true), Some(true));
        (capabilities.completions, capabilities.logging) =
            (Some(Default::default()), Some(Default::default()));
        ProviderInfo::new(&*self.0.label, capabilities)
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        match self.error() {
            Some(error) => Err(error.into()),
            None => Ok(ProviderPage::default()),
        }
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*state, PendingState::Unconnected(_)).then(ProvidedEntry::unlisted).into()
    }

    async fn handle(&self, _: Cx) -> Outcome {
        let connected = || RpcError::internal(format!("`{}` is connected now; call again", self.0.label));
        Outcome::Failed(self.error().unwrap_or_else(connected))
    }
}
