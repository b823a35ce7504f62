use pintle::server::{
    Cx, ListKind, Lookup, Outcome, PageRequest, Provider, ProviderInfo, ProviderPage, ReportPart,
    RequestError, Scope, Target, Watch,
};
use pintle_openapi::ApiTools;
use pintle_relay::Relay;

/// The server behind a backend, or the API. Clones share it.
#[derive(Clone)]
pub(in crate::verbs::gateway) enum BackendProvider {
    Relay(Relay),
    Api(ApiTools),
}

impl Provider for BackendProvider {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        match self {
            Self::Relay(relay) => relay.info(caller),
            Self::Api(tools) => tools.info(caller),
        }
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        match self {
            Self::Relay(relay) => relay.list(cx, list, page).await,
            Self::Api(tools) => tools.list(cx, list, page).await,
        }
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        match self {
            Self::Relay(relay) => relay.find(scope, target),
            Self::Api(tools) => tools.find(scope, target),
        }
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        match self {
            Self::Relay(relay) => relay.handle(cx).await,
            Self::Api(tools) => tools.handle(cx).await,
        }
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        match self {
            Self::Relay(relay) => relay.report(part),
            Self::Api(tools) => tools.report(part),
        }
    }

    fn watch(&self) -> &dyn Watch {
        match self {
            Self::Relay(relay) => relay.watch(),
            Self::Api(tools) => tools.watch(),
        }
    }
}
