use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use pintle_proto::client::{Cache, Change, Opened, Verdict};
use pintle_types::schema::{Implementation, LoggingLevel, ServerCapabilities, Tool};
use tokio::{sync::watch, time::Instant};

use super::{
    changes::{Event, Hub},
    notices::{Notice, Notices},
    settings::Settings,
    signals::Signals,
};
use crate::Ended;

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
    tickets: AtomicU64,
    facts: Mutex<Arc<Facts>>,
    log_level: Mutex<Option<LoggingLevel>>,
    /// Tools by name, as they were listed last.
    tools: Mutex<HashMap<String, Arc<Tool>>>,
    cache: Option<Mutex<Cache>>,
    started: Instant,
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
}

impl Facts {
    pub(super) fn new(opened: Opened, batches: bool) -> Self {
        Self {
            verdict: Some(opened.verdict),
            info: opened.info.as_ref().and_then(|info| info.decode().ok()).map(Arc::new),
            capabilities: opened.capabilities.as_ref().and_then(|can| can.decode().ok()),
            instructions: opened.instructions,
            batches,
        }
    }
}

impl Shared {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        let cache = settings.cache.map(|(entries, bytes)| Mutex::new(Cache::new(entries, bytes)));
        Self {
            signals: Signals::default(),
            hub: Hub::default(),
            notices: Notices::start(&settings),
            questions: AtomicUsize::new(0),
            noise: AtomicU64::new(0),
            ended: watch::Sender::new(None),
            tickets: AtomicU64::new(0),
            facts: Mutex::default(),
            log_level: Mutex::new(settings.log_level),
            tools: Mutex::default(),
            cache,
            started: Instant::now(),
            settings,
        }
    }

    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
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
        lock(&self.tools).get(name).cloned()
    }

    /// Remembers a page of tools; the first page begins anew.
    pub(super) fn learn(&self, tools: &[Tool], first: bool) {
        const MOST: usize = 16_384;
        let mut known = lock(&self.tools);
        if first {
            known.clear();
        }
        for tool in tools.iter().take(MOST.saturating_sub(known.len())) {
            known.insert(tool.name.clone(), Arc::new(tool.clone()));
        }
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
