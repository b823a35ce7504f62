//! A relay as a part of a server: its lists, its changes, and the entries that calls name.

use std::sync::Arc;

use pintle::{
    forward::question_keys,
    proto::Peer,
    server::{
        CacheHint, Cx, ListKind, Lookup, Outcome, PageRequest, ProvidedEntry, Provider, ProviderChanges,
        ProviderInfo, ProviderPage, ProviderSubscription, ReportPart, RequestError, Scope, SessionHandle,
        Target, Watch, WatchFuture,
    },
    types::{
        ErrorCode, Notification, RawObject, RpcError, method,
        schema::{CacheScope, ListParams, ServerCapabilities},
    },
};

use crate::{
    calls::{
        attempts::Attempts,
        upstream_call::{CallProgress, UpstreamCall, UpstreamRequest},
    },
    link_state::catalogue::{ChangeMark, KnownList},
    lock::lock,
    pairing,
    relay::Relay,
    upstream::pool::Lease,
};

/// The limit of the bytes of a list that is read to look for an entry.
const MAX_LIST_BYTES: usize = 16 << 20;
/// The limit of its pages.
const MAX_PAGES: usize = 1000;

impl Provider for Relay {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        let connection = &self.inner.upstream.primary().connection;
        let is_whole_server = self.options.is_whole_server;
        let mut info = ProviderInfo::new(self.backend(), self.offered(connection.capabilities()));
        info.instructions = connection.instructions().filter(|_| !is_whole_server);
        info.hints = lock(&self.inner.hints).clone();
        info.handles_any_method = true;
        info.is_whole_server = is_whole_server;
        info.may_be_stale = true;
        // The server behind decides by the credentials of the relay.
        info.may_require = false;
        info
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        if page.is_refresh() {
            self.refresh(&cx, list).await?;
            return Ok(ProviderPage::default());
        }
        let (cursor, first) = (page.cursor.as_deref(), page.cursor.is_none());
        match self.page(&cx, list, page.cursor.clone()).await {
            Ok((mut read, link, requested)) => {
                self.inner.upstream.recovered();
                let paged = &self.inner.paged;
                if let Some((entries, requested)) = paged.add(&link.catalogue, list, cursor, &read, requested)
                {
                    self.learn(&link, list, &entries, requested);
                }
                self.offer_tasks(&cx, list, &mut read.entries);
                Ok(read)
            }
            // Refused: it is the answer.
            Err(PageError::Refused(error)) => Err(error.into()),
            Err(PageError::Unreachable(error)) => {
                match self.last_list(&cx, list).filter(|_| first && !self.inner.upstream.is_long_down()) {
                    Some(known) => {
                        let mut known = known.entries.clone();
                        self.offer_tasks(&cx, list, &mut known);
                        Ok(ProviderPage::new(known))
                    }
                    None => Err(error.into()),
                }
            }
        }
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let upstream = &self.inner.upstream;
        if self.options.forwards_unlisted {
            let known = upstream.primary().catalogue.describe(target);
            return known.unwrap_or_else(ProvidedEntry::unlisted).into();
        }
        let capabilities = self.inner.last_declared.of(&scope.peer.capabilities);
        let sharing = self.options.links.sharing;
        if let Some(link) = upstream.open_for_lists(scope, &capabilities.capabilities, sharing) {
            let known = link.catalogue.describe(target);
            let lists = || ListKind::all_of(target).iter().copied().filter(|list| self.offers(*list));
            // A list that does not have the name is read again, if that was not just done.
            if known.is_some() && lists().all(|list| link.is_fresh(list))
                || lists().all(|list| link.was_just_read(list))
            {
                return known.into();
            }
        }
        // It is still an entry of this server: if that cannot be reached, calls of it fail with the reason, and no other provider answers
        // them.
        let of_client = upstream.last_catalogue(scope, sharing);
        let of_client = of_client.and_then(|catalogue| catalogue.describe(target));
        Lookup::Stale(of_client.or_else(|| self.inner.known.describe(target)))
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        if cx.method().starts_with("tasks/") {
            // Boxed, because its future is large and few requests need it.
            return Box::pin(self.handle_task_request(cx)).await;
        }
        let mut relay = self.clone();
        relay.options.answers_for_tasks = true;
        pairing::forward(&relay, &cx).await
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        match part {
            ReportPart::Names(list) => {
                self.inner.known.last(list).map(|list| list.keys()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for Relay {
    fn attach(&self, changes: ProviderChanges) {
        self.inner.upstream.attached().add(changes);
        self.listen();
    }

    fn watched(&self, uri: &str) {
        // Other connections watch what their clients subscribe to, and those of one principal what that one does.
        let upstream = &self.inner.upstream;
        if upstream.is_common(self.options.links.sharing) && upstream.principal().is_none() {
            self.inner.upstream.watched.insert(uri);
            self.send_subscriptions();
        }
    }

    fn unwatched(&self, uri: &str) {
        self.inner.upstream.watched.remove(uri);
        self.send_subscriptions();
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        Box::pin(async move {
            let mut subscription = self.subscribe_for(&cx, uris).await?;
            self.granted_own_tasks(&cx).into_iter().for_each(|id| subscription.grant_task(id));
            Ok(subscription)
        })
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        Box::pin(async move { self.unsubscribe_for(&cx, &uri) })
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.pass_on(notification, peer, session).await {
                tracing::debug!(%error, "the server behind a relay did not get a notification of a client");
            }
        })
    }
}

/// The reason why there is no page of a list.
enum PageError {
    /// The server behind answered with an error.
    Refused(RpcError),
    Unreachable(RpcError),
}

impl Relay {
    /// Returns the capabilities that the relay offers of those of the server behind.
    fn offered(&self, mut behind: ServerCapabilities) -> ServerCapabilities {
        self.declare_tasks(&mut behind);
        if self.options.is_whole_server {
            return behind;
        }
        behind.extra.clear();
        if let Some(extensions) = &mut behind.extensions {
            // That of the relay itself.
            extensions.remove(question_keys::EXTENSION);
        }
        behind
    }

    /// Passes a notification of a client on to the server behind, if that is for it.
    async fn pass_on(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> pintle::Result<()> {
        let Notification { method, params, .. } = notification;
        let upstream = &self.inner.upstream;
        match method::find(&method) {
            Some(_) if method == method::NOTIFICATIONS_ROOTS_LIST_CHANGED => {
                match session.and_then(|session| upstream.session_link(&session)) {
                    Some(link) => link.connection.notify_roots_changed().await,
                    None => Ok(()),
                }
            }
            None if self.options.is_whole_server => {
                let declared = peer.map(|peer| peer.capabilities.clone()).unwrap_or_default();
                let capabilities = &self.inner.last_declared.of(&declared).capabilities;
                let sharing = self.options.links.sharing;
                let link = upstream.lease_for_notification(session.as_ref(), capabilities, sharing).await;
                link.map_err(pintle::Error::Rpc)?.connection.notify(method, params).await
            }
            _ => Ok(()),
        }
    }

    fn offers(&self, list: ListKind) -> bool {
        list.is_offered(&self.inner.upstream.primary().connection.capabilities())
    }

    /// Requests a page on behalf of a client.
    async fn page(
        &self,
        cx: &Cx,
        list: ListKind,
        cursor: Option<String>,
    ) -> Result<(ProviderPage, Lease, ChangeMark), PageError> {
        let declared = self.request(cx).capabilities();
        let mut attempts = Attempts::default();
        loop {
            let capabilities = &declared.capabilities;
            let link = self.inner.upstream.lease_for_lists(cx, capabilities, self.options.links).await;
            let link = link.map_err(PageError::Unreachable)?;
            let requested = link.mark(list);
            match self.page_over(cx, &link, list, cursor.clone()).await {
                Ok(page) => return Ok((page, link, requested)),
                Err(pintle::Error::Rpc(error)) => return Err(PageError::Refused(error)),
                // Lists are safe to repeat.
                Err(error) => {
                    let lost = matches!(error, pintle::Error::Closed(_)) && self.inner.upstream.can_reopen();
                    if !lost || !attempts.wait().await {
                        return Err(PageError::Unreachable(self.request(cx).failed(error).into()));
                    }
                }
            }
        }
    }

    async fn page_over(
        &self,
        cx: &Cx,
        link: &Lease,
        list: ListKind,
        cursor: Option<String>,
    ) -> pintle::Result<ProviderPage> {
        let unreadable = |error: serde_json::Error| {
            pintle::Error::Decode(format!("a page of `{}`: {error}", list.method()))
        };
        let mut asked = ListParams::new();
        asked.cursor = cursor;
        let mut params = RawObject::from_serialize(&asked).map_err(unreadable)?;
        // Only the metadata of the client's own list request is passed on.
        if cx.method() == list.method()
            && let Ok(Some(meta)) = self.request(cx).params().decode_member("_meta")
        {
            params = params.with("_meta", meta);
        }
        let params = self.pass_hop(cx, &params).map_err(pintle::Error::Rpc)?;
        let capabilities = self.request(cx).capabilities().printed.clone();
        let request = UpstreamRequest {
            method: list.method().to_owned(),
            params,
            capabilities,
            logs: None,
            tasks: None,
            creates_task: false,
            cx,
        };
        let mut call = UpstreamCall::start(link.again(), request);
        let result = loop {
            // A list asks nothing, and its notifications are not those of the client's request.
            if let CallProgress::Done(result) = call.next().await {
                break result?;
            }
        };
        *lock(&self.inner.hints).get_mut(list) = read_hint(&result);
        let entries: Option<Vec<RawObject>> = result.decode_member(list.member()).map_err(unreadable)?;
        let mut page = ProviderPage::new(entries.unwrap_or_default());
        page.cursor = result.decode_member("nextCursor").map_err(unreadable)?;
        Ok(page)
    }

    /// Reads a list again that may have changed, at most once a second if no change was reported.
    pub(super) async fn refresh(&self, cx: &Cx, list: ListKind) -> Result<(), RpcError> {
        if !self.offers(list) {
            return Ok(());
        }
        let capabilities = &self.request(cx).capabilities().capabilities;
        let link = self.inner.upstream.lease_for_lists(cx, capabilities, self.options.links).await?;
        link.want_pushes();
        // Another caller may have read it meanwhile.
        let _reading = link.catalogue.reading.lock().await;
        if !link.catalogue.was_just_read(list) {
            let requested = link.mark(list);
            let read = Box::pin(self.read_list(cx, &link, list)).await?;
            self.learn(&link, list, &read, requested);
        }
        Ok(())
    }

    /// Stores a list for the connection over which it was read, and as the last one of the server.
    fn learn(&self, link: &Lease, kind: ListKind, entries: &[RawObject], requested: ChangeMark) {
        let known = &self.inner.known;
        let list = KnownList::shared(kind, entries, [link.catalogue.last(kind), known.last(kind)]);
        known.learn(list.clone(), known.mark(kind, None));
        link.catalogue.learn(list, requested);
    }

    /// Reads all pages of a list.
    async fn read_list(&self, cx: &Cx, link: &Lease, list: ListKind) -> Result<Vec<RawObject>, RpcError> {
        let (mut entries, mut bytes, mut cursor) = (Vec::new(), 0, None);
        for _ in 0..MAX_PAGES {
            let page = self.page_over(cx, link, list, cursor).await;
            let page = match page {
                Ok(page) => page,
                // A server may have resources and no templates.
                Err(pintle::Error::Rpc(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => break,
                Err(error) => return Err(self.request(cx).failed(error).into()),
            };
            bytes += page.entries.iter().map(|entry| entry.as_str().len()).sum::<usize>();
            entries.extend(page.entries);
            cursor = page.cursor;
            if cursor.is_none() || bytes > MAX_LIST_BYTES {
                break;
            }
        }
        Ok(entries)
    }

    /// Returns the list that was read last over the connection of a client.
    fn last_list(&self, cx: &Cx, list: ListKind) -> Option<Arc<KnownList>> {
        self.inner.upstream.last_catalogue(&cx.scope(), self.options.links.sharing)?.last(list)
    }
}

/// Reads how long a page may be cached. Pages of the session era may not.
fn read_hint(result: &RawObject) -> CacheHint {
    let mut hint = CacheHint::default();
    hint.ttl_ms = result.decode_member("ttlMs").ok().flatten().unwrap_or_default();
    if let Ok(Some(scope)) = result.decode_member::<CacheScope>("cacheScope") {
        hint.scope = scope;
    }
    hint
}
