use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Extensions, HeaderMap, HeaderValue};
use pintle_proto::{
    client::{Cache, Change, Opened, Verdict},
    http::{BadAnnotation, BadArgument, HeaderParams, MCP_NAME, Streams, encode_value, name_in},
};
use pintle_types::{
    Meta, RawObject, RawValue, method,
    schema::{Implementation, ListToolsResult, LoggingLevel, ServerCapabilities, Tool},
};
use tokio::{
    sync::{OnceCell, watch},
    time::Instant,
};

use super::{
    callbacks::{CallbackEvent, CallbackQueue},
    hub::{Event, EventHub},
    settings::ClientSettings,
    signals::Signals,
};
use crate::{
    Ended,
    client::asking::{Asker, RootsObserver},
    client::tools::{KnownTool, ToolPage, ToolRegistry, ToolsVersion},
    lock::lock,
    timeouts::after,
    transport::{DeadlinePauses, DrivenTransport, PushState, TransportKind},
};

/// The state that the driver of a connection shares with its handles.
#[derive(Debug)]
pub(in crate::client) struct ConnectionState {
    pub(in crate::client) settings: Arc<ClientSettings>,
    /// The name of the connection, given by the host.
    pub(in crate::client) name: Option<Arc<str>>,
    pub(in crate::client) signals: Signals,
    pub(in crate::client) hub: Arc<EventHub>,
    pub(in crate::client) notices: Arc<CallbackQueue>,
    /// Number of unanswered input requests.
    pub(in crate::client) questions: AtomicUsize,
    /// Number of lines that were not messages.
    pub(in crate::client) noise: AtomicU64,
    pub(in crate::client) ended: watch::Sender<Option<Ended>>,
    facts: Mutex<Arc<ServerFacts>>,
    log_level: Mutex<Option<LoggingLevel>>,
    tools: Mutex<ToolRegistry>,
    /// The list of tools for output checks, and the generation of tools that it belongs to.
    output_lookup: Mutex<(u64, Arc<OnceCell<()>>)>,
    cache: Option<Mutex<Cache>>,
    /// The `_meta` of the last tool result, as text and parsed.
    last_meta: Mutex<Option<(Box<str>, Meta)>>,
    started: Instant,
    /// Whether the transport has headers.
    pub(in crate::client) has_headers: bool,
    /// Whether messages of the server arrive on the stream of the request that they belong to. HTTP+SSE has one for all.
    pub(in crate::client) has_streams: AtomicBool,
    pub(in crate::client) transport: TransportKind,
    pub(in crate::client) deadline_pauses: DeadlinePauses,
    push_state: PushState,
}

/// The position and size of a page in a list.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct PageExtent {
    pub(in crate::client) first: bool,
    pub(in crate::client) bytes: usize,
}

/// The facts that the opening established about the server.
#[derive(Debug, Default)]
pub(in crate::client) struct ServerFacts {
    /// The result of the negotiation; `None` until the connection is open.
    pub(in crate::client) verdict: Option<Verdict>,
    pub(in crate::client) info: Option<Arc<Implementation>>,
    pub(in crate::client) capabilities: Option<ServerCapabilities>,
    pub(in crate::client) instructions: Option<Box<str>>,
    /// Whether the revision has batches.
    pub(in crate::client) batches: bool,
    /// Whether arguments may be mirrored in headers.
    pub(in crate::client) mirrors: bool,
    /// Whether a stateless server has sessions too.
    pub(in crate::client) has_sessions: bool,
}

impl ServerFacts {
    pub(in crate::client) fn new(opened: Opened, batches: bool, has_headers: bool) -> Self {
        Self {
            mirrors: has_headers && Streams::of(opened.revision).mirrored,
            verdict: Some(opened.verdict),
            info: opened.info.as_ref().and_then(|info| info.decode().ok()).map(Arc::new),
            capabilities: opened.capabilities.as_ref().and_then(|can| can.decode().ok()),
            instructions: opened.instructions,
            batches,
            has_sessions: opened.has_sessions,
        }
    }
}

impl ConnectionState {
    pub(in crate::client) fn new(
        settings: Arc<ClientSettings>,
        name: Option<Arc<str>>,
        transport: &dyn DrivenTransport,
    ) -> Self {
        let cache = settings.cache.map(|(entries, bytes)| Mutex::new(Cache::new(entries, bytes)));
        let hub = Arc::new(EventHub::new(settings.limits.queued_bytes));
        Self {
            signals: Signals::default(),
            notices: Arc::new(CallbackQueue::new(&settings, name.clone(), &hub)),
            hub,
            questions: AtomicUsize::new(0),
            noise: AtomicU64::new(0),
            ended: watch::Sender::new(None),
            facts: Mutex::default(),
            log_level: Mutex::new(settings.log_level),
            tools: Mutex::new(ToolRegistry::new(settings.limits.list_bytes)),
            output_lookup: Mutex::default(),
            cache,
            last_meta: Mutex::default(),
            started: Instant::now(),
            has_headers: transport.has_headers(),
            has_streams: AtomicBool::new(transport.has_headers()),
            transport: transport.kind(),
            deadline_pauses: transport.deadline_pauses(),
            push_state: transport.push_state(),
            name,
            settings,
        }
    }

    /// Whether the deadline is extended: an input request is or was open, or a login is or was in progress.
    pub(in crate::client) fn was_held_up(&self, since: usize) -> bool {
        self.questions.load(Ordering::Relaxed) > 0 || self.deadline_pauses.any_since(since)
    }

    /// Returns the origin of an input request of this connection.
    pub(in crate::client) fn asker(&self) -> Asker {
        Asker {
            connection: self.name.clone(),
            server: self.server_facts().info.clone(),
            key: None,
            extensions: Extensions::new(),
            reports: None,
            tasks: None,
        }
    }

    pub(in crate::client) fn server_facts(&self) -> Arc<ServerFacts> {
        lock(&self.facts).clone()
    }

    pub(in crate::client) fn set_server_facts(&self, facts: ServerFacts) {
        *lock(&self.facts) = Arc::new(facts);
    }

    /// Discards everything known after a reconnection: the server may be a different one.
    pub(in crate::client) fn reopened(&self) {
        self.discard_tools();
        self.with_cache(|cache, _| cache.clear());
        self.hub.push(&Event::Reopened);
    }

    pub(in crate::client) fn log_level(&self) -> Option<LoggingLevel> {
        *lock(&self.log_level)
    }

    pub(in crate::client) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub(in crate::client) fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        Some(lock(&self.tools).get(name)?.tool.clone())
    }

    /// Returns whether a known tool may have an output schema.
    pub(in crate::client) fn has_output_schemas(&self) -> bool {
        lock(&self.tools).has_output_schemas()
    }

    /// Returns the definition of a tool if it is current, with its version: see [`ToolRegistry::fresh`].
    pub(in crate::client) fn fresh_tool(&self, name: &str) -> Option<(Option<Arc<Tool>>, ToolsVersion)> {
        let period = self.reporting_period();
        let tools = lock(&self.tools);
        let now = tools.version(period);
        Some((tools.fresh(name, now, Instant::now())?, now))
    }

    /// Returns the cell that is set when the tools were listed for output checks. It is replaced when the tools change.
    pub(in crate::client) fn output_lookup(&self) -> Arc<OnceCell<()>> {
        let generation = lock(&self.tools).generation();
        let mut lookup = lock(&self.output_lookup);
        if lookup.0 != generation {
            *lookup = (generation, Arc::default());
        }
        lookup.1.clone()
    }

    /// Returns the version of a list that is requested now.
    pub(in crate::client) fn tools_version(&self) -> ToolsVersion {
        let period = self.reporting_period();
        lock(&self.tools).version(period)
    }

    /// Whether the tools are unchanged since this version, and no change may have been missed.
    pub(in crate::client) fn is_current(&self, version: ToolsVersion) -> bool {
        lock(&self.tools).is_current(version)
    }

    /// Records that a subscription reports changes of the tools from now on.
    pub(in crate::client) fn tools_subscribed(&self) {
        lock(&self.tools).subscribed();
    }

    /// Records the end of the subscription. The server may have restarted, so all known tools are discarded.
    pub(in crate::client) fn tools_unsubscribed(&self) {
        lock(&self.tools).unsubscribed();
        self.forget_tools();
    }

    /// Returns the current period without a gap in which messages arrive that belong to no request.
    pub(in crate::client) fn push_period(&self) -> Option<u64> {
        self.push_state.period()
    }

    /// The current period without a gap in which the connection itself reports changes, if it does. A session does. So does a pipe
    /// to a stateless server whose list never changes, because a restart is noticed.
    fn reporting_period(&self) -> Option<u64> {
        let facts = self.server_facts();
        let changes = |can: &ServerCapabilities| {
            can.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
        };
        let reports = match facts.verdict {
            Some(verdict) if !verdict.revision().facts().pushes_changes => {
                !self.has_headers && facts.capabilities.as_ref().is_some_and(|can| !changes(can))
            }
            verdict => verdict.is_some(),
        };
        reports.then(|| self.push_state.period()).flatten()
    }

    /// Stores a page of tools that was requested at this version; `None` if it is from the cache. Where arguments are mirrored in
    /// headers, tools with invalid header annotations are removed: they must not be called. Returns whether there were any.
    pub(in crate::client) fn learn(
        &self,
        page: &mut ListToolsResult,
        extent: PageExtent,
        asked: Option<ToolsVersion>,
    ) -> bool {
        let (mirrors, count) = (self.server_facts().mirrors, page.tools.len());
        let mut tools = Vec::with_capacity(page.tools.len());
        page.tools.retain(|tool| {
            let headers = match mirrors.then(|| header_params(tool)) {
                None => HeaderParams::default(),
                Some(Ok(headers)) => headers,
                Some(Err(bad)) => {
                    tracing::warn!(tool = %tool.name, %bad, "a tool was left out");
                    return false;
                }
            };
            let known = KnownTool { tool: Arc::new(tool.clone()), headers: Arc::new(headers) };
            tools.push((tool.name.clone(), known));
            true
        });
        let mut known = lock(&self.tools);
        let PageExtent { first, bytes } = extent;
        let removed = page.tools.len() < count;
        let Some(asked) = asked else {
            known.supplement(tools, bytes);
            return removed;
        };
        let ttl = u64::try_from(page.ttl_ms.unwrap_or_default()).unwrap_or_default();
        let until = after(Instant::now(), Duration::from_millis(ttl));
        let before =
            known.learn(ToolPage { tools, bytes, first, last: page.next_cursor.is_none(), until }, asked);
        drop(known);
        drop(before);
        removed
    }

    fn discard_tools(&self) {
        let before = lock(&self.tools).drop_all();
        drop(before);
    }

    /// Returns the headers that mirror arguments of a request. Those of another client are kept, if the schema of the tool does not
    /// name them.
    pub(in crate::client) fn mirrored(
        &self,
        method: &str,
        params: &RawObject,
        foreign: Option<&HeaderMap>,
    ) -> Result<HeaderMap, BadArgument> {
        if !self.server_facts().mirrors {
            return Ok(HeaderMap::new());
        }
        if method != method::TOOLS_CALL {
            let named = self.named(method, params);
            // What it repeats is known to the other client only.
            return Ok(foreign.filter(|_| named.is_empty()).cloned().unwrap_or(named));
        }
        let mut headers = foreign.cloned().unwrap_or_default();
        if lock(&self.tools).is_empty() {
            return Ok(headers);
        }
        let name: String = params.decode_member("name").ok().flatten().unwrap_or_default();
        let known = lock(&self.tools).get(&name).map(|known| known.headers.clone());
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            known.iter().for_each(|param| drop(headers.remove(&param.header)));
            let arguments: Option<Box<RawValue>> = params.decode_member("arguments").ok().flatten();
            known.mirror(arguments.as_deref(), &mut headers)?;
        }
        Ok(headers)
    }

    /// Returns the header with the name that a request of an extension has in its params.
    fn named(&self, method: &str, params: &RawObject) -> HeaderMap {
        let name = self.settings.names.get(method).and_then(|member| name_in(params, member));
        let value = name.and_then(|name| HeaderValue::from_str(&encode_value(&name)).ok());
        value.map(|value| (MCP_NAME.clone(), value)).into_iter().collect()
    }

    /// Parses the `_meta` of a result. Most servers repeat it literally, so the last one is cached (see `bench/LEDGER.md`).
    pub(in crate::client) fn meta(&self, text: &str) -> Option<Meta> {
        const MAX_CACHED: usize = 4096;
        let mut last = lock(&self.last_meta);
        if let Some((known, meta)) = &*last
            && **known == *text
        {
            return Some(meta.clone());
        }
        let meta: Meta = serde_json::from_str(text).ok()?;
        if text.len() <= MAX_CACHED {
            *last = Some((text.into(), meta.clone()));
        }
        Some(meta)
    }

    /// Discards all known tools.
    pub(in crate::client) fn forget_tools(&self) {
        self.discard_tools();
        self.with_cache(|cache, _| cache.forget(&Change::Tools));
    }

    /// Records a change on the server: outdated entries are discarded and listeners notified.
    pub(in crate::client) fn changed(&self, change: &Change) {
        if *change == Change::Tools {
            self.discard_tools();
        }
        self.with_cache(|cache, _| cache.forget(change));
        self.queue_change(change);
    }

    pub(in crate::client) fn notify(&self, notice: CallbackEvent) {
        self.notices.push(notice);
    }

    /// Returns how many callback events there have been.
    pub(in crate::client) fn noticed(&self) -> u64 {
        self.notices.count()
    }

    /// Runs `work` with the cache and the time, if there is a cache.
    pub(in crate::client) fn with_cache<T>(&self, work: impl FnOnce(&mut Cache, u64) -> T) -> Option<T> {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.cache.as_ref().map(|cache| work(&mut lock(cache), now))
    }

    pub(in crate::client) fn how_ended(&self) -> Ended {
        self.ended.borrow().clone().unwrap_or(Ended::ByPeer { known: None })
    }

    /// Records the end of the connection. The first reason is kept.
    pub(in crate::client) fn end(&self, ended: Ended) {
        self.ended.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(ended);
            first
        });
        self.notices.close();
    }
}

impl RootsObserver for ConnectionState {
    fn roots_changed(&self) {
        self.signals.roots_changed();
    }
}

fn header_params(tool: &Tool) -> Result<HeaderParams, BadAnnotation> {
    HeaderParams::from_object_schema(&tool.input_schema)
}
