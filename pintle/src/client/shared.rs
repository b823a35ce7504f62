use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use http::HeaderMap;
use pintle_proto::{
    client::{Cache, Change, Opened, Verdict},
    http::{BadAnnotation, BadArgument, HeaderParams, Streams},
};
use pintle_types::{
    Meta, RawObject, RawValue,
    schema::{Implementation, LoggingLevel, ServerCapabilities, Tool},
};
use tokio::{sync::watch, time::Instant};

use super::{
    changes::{Event, Hub},
    notices::{Notice, Notices},
    settings::Settings,
    signals::Signals,
};
use crate::{
    Ended,
    transport::{Holdups, Transport},
};

/// What the driver of a connection and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    pub(super) signals: Signals,
    pub(super) hub: Hub,
    pub(super) notices: Option<Arc<Notices>>,
    /// Questions of the server that wait for an answer of ours.
    pub(super) questions: AtomicUsize,
    /// Lines that were no messages.
    pub(super) noise: AtomicU64,
    pub(super) ended: watch::Sender<Option<Ended>>,
    facts: Mutex<Arc<Facts>>,
    log_level: Mutex<Option<LoggingLevel>>,
    /// Tools by name, as they were listed last.
    tools: Mutex<HashMap<String, Known>>,
    cache: Option<Mutex<Cache>>,
    /// The `_meta` of the last result of a tool, as it was printed and as it was read.
    last_meta: Mutex<Option<(Box<str>, Meta)>>,
    started: Instant,
    /// Whether the transport says things in headers too.
    pub(super) has_headers: bool,
    pub(super) holdups: Holdups,
}

/// A tool that was listed.
#[derive(Clone, Debug)]
struct Known {
    tool: Arc<Tool>,
    /// Which arguments are repeated as headers, where there are headers.
    headers: Arc<HeaderParams>,
}

/// What the server says of itself.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// What was agreed on; `None` until the connection is open.
    pub(super) verdict: Option<Verdict>,
    pub(super) info: Option<Arc<Implementation>>,
    pub(super) capabilities: Option<ServerCapabilities>,
    pub(super) instructions: Option<Box<str>>,
    /// Whether several requests may be sent as one message.
    pub(super) batches: bool,
    /// Whether some arguments are repeated as headers.
    pub(super) mirrors: bool,
}

impl Facts {
    pub(super) fn new(opened: Opened, batches: bool, has_headers: bool) -> Self {
        Self {
            mirrors: has_headers && Streams::of(opened.revision).mirrored,
            verdict: Some(opened.verdict),
            info: opened.info.as_ref().and_then(|info| info.decode().ok()).map(Arc::new),
            capabilities: opened.capabilities.as_ref().and_then(|can| can.decode().ok()),
            instructions: opened.instructions,
            batches,
        }
    }
}

impl Shared {
    pub(super) fn new(settings: Arc<Settings>, transport: &dyn Transport) -> Self {
        let cache = settings.cache.map(|(entries, bytes)| Mutex::new(Cache::new(entries, bytes)));
        Self {
            signals: Signals::default(),
            hub: Hub::default(),
            notices: Notices::start(&settings),
            questions: AtomicUsize::new(0),
            noise: AtomicU64::new(0),
            ended: watch::Sender::new(None),
            facts: Mutex::default(),
            log_level: Mutex::new(settings.log_level),
            tools: Mutex::default(),
            cache,
            last_meta: Mutex::default(),
            started: Instant::now(),
            has_headers: transport.has_headers(),
            holdups: transport.holdups(),
            settings,
        }
    }

    /// Whether the time since then was not the server's: somebody on this side has, or had, to answer something first.
    pub(super) fn was_held_up(&self, since: usize) -> bool {
        self.questions.load(Ordering::Relaxed) > 0 || self.holdups.since(since)
    }

    pub(super) fn facts(&self) -> Arc<Facts> {
        lock(&self.facts).clone()
    }

    pub(super) fn set_facts(&self, facts: Facts) {
        *lock(&self.facts) = Arc::new(facts);
    }

    /// The server was started again, and may be another.
    pub(super) fn reopened(&self) {
        lock(&self.tools).clear();
        self.with_cache(|cache, _| cache.clear());
        self.hub.push(&Event::Reopened);
    }

    pub(super) fn log_level(&self) -> Option<LoggingLevel> {
        *lock(&self.log_level)
    }

    pub(super) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub(super) fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        Some(lock(&self.tools).get(name)?.tool.clone())
    }

    /// Remembers a page of tools; the first page begins anew. Where arguments are repeated as headers, tools that say
    /// so in a way that cannot be followed are left out: they must not be called.
    pub(super) fn learn(&self, tools: &mut Vec<Tool>, first: bool) {
        const MOST: usize = 16_384;
        let mirrors = self.facts().mirrors;
        let mut page = Vec::with_capacity(tools.len());
        tools.retain(|tool| {
            let headers = match mirrors.then(|| header_params(tool)) {
                None => HeaderParams::default(),
                Some(Ok(headers)) => headers,
                Some(Err(bad)) => {
                    tracing::warn!(tool = %tool.name, %bad, "a tool was left out");
                    return false;
                }
            };
            let known = Known { tool: Arc::new(tool.clone()), headers: Arc::new(headers) };
            page.push((tool.name.clone(), known));
            true
        });
        let mut known = lock(&self.tools);
        if first {
            known.clear();
        }
        let room = MOST.saturating_sub(known.len());
        known.extend(page.into_iter().take(room));
    }

    /// The headers that repeat arguments of this request.
    pub(super) fn mirrored(&self, method: &str, params: &RawObject) -> Result<HeaderMap, BadArgument> {
        let mut headers = HeaderMap::new();
        if method != "tools/call" || !self.facts().mirrors {
            return Ok(headers);
        }
        if lock(&self.tools).is_empty() {
            return Ok(headers);
        }
        let name: String = params.decode_member("name").ok().flatten().unwrap_or_default();
        let known = lock(&self.tools).get(&name).map(|known| known.headers.clone());
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            let arguments: Option<Box<RawValue>> = params.decode_member("arguments").ok().flatten();
            known.mirror(arguments.as_deref(), &mut headers)?;
        }
        Ok(headers)
    }

    /// Reads the `_meta` of a result, which most servers repeat to the letter: what is equal to the last is not read
    /// again. (Measured: a server's name, read into a tree and dropped each time, takes 4,000 instructions.)
    pub(super) fn meta(&self, text: &str) -> Option<Meta> {
        const MOST: usize = 4096;
        let mut last = lock(&self.last_meta);
        if let Some((known, meta)) = &*last
            && **known == *text
        {
            return Some(meta.clone());
        }
        let meta: Meta = serde_json::from_str(text).ok()?;
        if text.len() <= MOST {
            *last = Some((text.into(), meta.clone()));
        }
        Some(meta)
    }

    /// What is known of the tools is wrong.
    pub(super) fn forget_tools(&self) {
        lock(&self.tools).clear();
        self.with_cache(|cache, _| cache.forget(&Change::Tools));
    }

    /// Something of the server's has changed: nothing old of it is served from here on.
    pub(super) fn changed(&self, change: Change) {
        if change == Change::Tools {
            lock(&self.tools).clear();
        }
        self.with_cache(|cache, _| cache.forget(&change));
        self.hub.push(&Event::Changed(change.clone()));
        if self.settings.on_change.is_some() {
            self.notify(Notice::Change(change));
        }
    }

    pub(super) fn notify(&self, notice: Notice) {
        if let Some(notices) = &self.notices {
            notices.push(notice);
        }
    }

    /// Which callbacks have been called for so far.
    pub(super) fn noticed(&self) -> u64 {
        self.notices.as_ref().map_or(0, |notices| notices.count())
    }

    /// The cache and the time, if there is a cache.
    pub(super) fn with_cache<T>(&self, work: impl FnOnce(&mut Cache, u64) -> T) -> Option<T> {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.cache.as_ref().map(|cache| work(&mut lock(cache), now))
    }

    pub(super) fn how_ended(&self) -> Ended {
        self.ended.borrow().clone().unwrap_or(Ended::ByPeer { known: None })
    }

    /// The connection is over. The first to say so is believed.
    pub(super) fn end(&self, ended: Ended) {
        self.ended.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(ended);
            first
        });
        self.hub.close();
        self.notices.iter().for_each(|notices| notices.close());
    }
}

fn header_params(tool: &Tool) -> Result<HeaderParams, BadAnnotation> {
    HeaderParams::from_object_schema(&tool.input_schema)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
