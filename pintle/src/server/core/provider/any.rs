use std::{future::Future, pin::Pin, sync::Arc};

use super::{
    Provider,
    info::{ProviderInfo, ReportPart},
    lookup::Lookup,
    page::ProviderPage,
    watch::Watch,
};
use crate::server::{
    Cx, ListKind, PageRequest, RequestError, Scope, Target, core::driver::run::HandlerFuture,
};

/// A [`Provider`] of any type.
pub(crate) trait AnyProvider: Send + Sync {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo;
    fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> ProviderFuture<'_, ProviderPage>;
    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup;
    fn handle(self: Arc<Self>, cx: Cx) -> HandlerFuture;
    fn report(&self, part: ReportPart) -> Vec<String>;
    fn watch(&self) -> &dyn Watch;
}

pub(crate) type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RequestError>> + Send + 'a>>;

impl<P: Provider> AnyProvider for P {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        Provider::info(self, caller)
    }

    fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> ProviderFuture<'_, ProviderPage> {
        Box::pin(Provider::list(self, cx, list, page))
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        Provider::find(self, scope, target)
    }

    fn handle(self: Arc<Self>, cx: Cx) -> HandlerFuture {
        Box::pin(async move { Provider::handle(&*self, cx).await })
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        Provider::report(self, part)
    }

    fn watch(&self) -> &dyn Watch {
        Provider::watch(self)
    }
}
