use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Waker},
};

use pintle_proto::server::{Change, Watched};

use crate::server::Notice;

/// Everybody who may want to hear of changes: one ear for each connection, session or subscription.
#[derive(Debug, Default)]
pub(crate) struct Ears(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    ears: Vec<Weak<Ear>>,
    /// How many there are before those that are gone are looked for: so that joining costs little however many joined.
    crowded: usize,
    /// Whether nothing more will come.
    closed: bool,
}

/// What a connection has not looked at yet. Changes are merged, so it holds little however slow the connection is.
#[derive(Debug, Default)]
pub(crate) struct Ear(Mutex<Heard>);

#[derive(Debug, Default)]
struct Heard {
    tools: bool,
    prompts: bool,
    resources: bool,
    /// What those watch who listen with it, the first of them apart: most are alone.
    watched: Option<Watched>,
    also_watched: Vec<Watched>,
    /// Whether nobody is there who would look: then one mark is enough.
    unread: bool,
    updated: BTreeSet<Box<str>>,
    /// How long the texts of `updated` are.
    updated_bytes: usize,
    /// So many resources changed that nobody counts them any more.
    all_updated: bool,
    /// What extensions have to say.
    notices: VecDeque<Arc<Notice>>,
    /// Whether nothing more will come.
    closed: bool,
    waker: Option<Waker>,
}

impl Heard {
    fn is_nothing(&self) -> bool {
        let Self { tools, prompts, resources, updated, all_updated, notices, .. } = self;
        !(*tools || *prompts || *resources || *all_updated) && updated.is_empty() && notices.is_empty()
    }
}

impl Heard {
    fn watches(&self, uri: &str) -> bool {
        self.watched.iter().chain(&self.also_watched).any(|watched| watched.covers(uri))
    }

    fn note(&mut self, uri: &str) {
        if self.all_updated || self.updated.contains(uri) {
            return;
        }
        let (most, bytes) = APART;
        self.updated_bytes += uri.len();
        if self.unread || self.updated.len() >= most || self.updated_bytes > bytes {
            self.forget_updated();
            self.all_updated = true;
        } else {
            self.updated.insert(uri.into());
        }
    }

    fn forget_updated(&mut self) {
        self.updated = BTreeSet::new();
        self.updated_bytes = 0;
    }
}

/// Changed resources that are remembered one by one, and the bytes of their URIs.
const APART: (usize, usize) = (1024, 64 << 10);

/// Notices of extensions that wait for a listener, and for one that may come; of more the oldest is forgotten.
const NOTICES: (usize, usize) = (1024, 32);

/// What came to an ear.
#[derive(Debug)]
pub(crate) enum News {
    One(Change),
    /// Whatever is watched may have changed.
    EveryResource,
    /// Extensions have something to say: see [`Ear::take_notice`].
    Notices,
}

impl Ears {
    pub(crate) fn join(&self) -> Arc<Ear> {
        let ear = Arc::new(Ear::default());
        self.add(&ear);
        ear
    }

    /// Lets one hear that hears elsewhere too.
    pub(crate) fn add(&self, ear: &Arc<Ear>) {
        let mut registry = lock(&self.0);
        let Registry { ears, crowded, closed } = &mut *registry;
        if *closed {
            ear.close();
        }
        if ears.len() >= *crowded {
            ears.retain(|ear| ear.strong_count() > 0);
            *crowded = 2 * ears.len() + 16;
        }
        ears.push(Arc::downgrade(ear));
    }

    pub(crate) fn tell(&self, change: &Change) {
        self.each(|ear| ear.hear(change));
    }

    pub(crate) fn tell_notice(&self, notice: &Arc<Notice>) {
        self.each(|ear| ear.hear_notice(notice));
    }

    /// Tells all that nothing more will come.
    #[cfg(feature = "http-server")]
    pub(crate) fn close(&self) {
        lock(&self.0).closed = true;
        self.each(Ear::close);
    }

    fn each(&self, tell: impl Fn(&Ear)) {
        let ears: Vec<_> = lock(&self.0).ears.iter().filter_map(Weak::upgrade).collect();
        ears.iter().for_each(|ear| tell(ear));
    }
}

impl Ear {
    fn hear_notice(&self, notice: &Arc<Notice>) {
        let mut heard = lock(&self.0);
        if notice.key.is_some() {
            heard.notices.retain(|other| (&other.method, &other.key) != (&notice.method, &notice.key));
        }
        let most = if heard.unread { NOTICES.1 } else { NOTICES.0 };
        if heard.notices.len() >= most {
            heard.notices.pop_front();
            tracing::debug!("a notice was forgotten: its listener is too slow");
        }
        heard.notices.push_back(notice.clone());
        wake(heard);
    }

    /// Nothing more will come: whoever listens may go.
    pub(crate) fn close(&self) {
        let mut heard = lock(&self.0);
        heard.closed = true;
        wake(heard);
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// Has whoever listens look again.
    #[cfg(feature = "http-server")]
    pub(crate) fn prick(&self) {
        wake(lock(&self.0));
    }

    /// Hears of what a listener watches, from here on.
    pub(crate) fn follow(&self, watched: &Watched) {
        let mut heard = lock(&self.0);
        if heard.watched.as_ref().is_none_or(|known| known.is_last()) {
            heard.watched = Some(watched.clone());
            return;
        }
        // Those whose listeners are gone go too.
        heard.also_watched.retain(|known| !known.is_last());
        heard.also_watched.push(watched.clone());
    }

    /// Whether somebody is there who looks at what came. While nobody is, only that something changed is remembered.
    #[cfg(feature = "http-server")]
    pub(crate) fn set_read(&self, read: bool) {
        let mut heard = lock(&self.0);
        heard.unread = !read;
        if !read {
            heard.all_updated |= !heard.updated.is_empty();
            heard.forget_updated();
            let spare = heard.notices.len().saturating_sub(NOTICES.1);
            heard.notices.drain(..spare);
            heard.notices.shrink_to_fit();
        }
    }

    /// The next notice of an extension.
    pub(crate) fn take_notice(&self) -> Option<Arc<Notice>> {
        lock(&self.0).notices.pop_front()
    }

    fn hear(&self, change: &Change) {
        let mut heard = lock(&self.0);
        match change {
            Change::Tools => heard.tools = true,
            Change::Prompts => heard.prompts = true,
            Change::Resources => heard.resources = true,
            // Nobody is woken for what nobody watches.
            Change::Resource(uri) if !heard.watches(uri) => return,
            Change::Resource(uri) => heard.note(uri),
            _ => {}
        }
        wake(heard);
    }

    /// Takes what came; if nothing did, the task will be woken.
    pub(crate) fn take(&self, cx: &mut Context<'_>) -> Vec<News> {
        let mut heard = lock(&self.0);
        match &mut heard.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        // Nothing, nearly each time.
        if heard.is_nothing() {
            return Vec::new();
        }
        let mut news = Vec::new();
        for (flag, change) in [
            (std::mem::take(&mut heard.tools), Change::Tools),
            (std::mem::take(&mut heard.prompts), Change::Prompts),
            (std::mem::take(&mut heard.resources), Change::Resources),
        ] {
            if flag {
                news.push(News::One(change));
            }
        }
        if std::mem::take(&mut heard.all_updated) {
            news.push(News::EveryResource);
        }
        heard.updated_bytes = 0;
        news.extend(
            std::mem::take(&mut heard.updated).into_iter().map(|uri| News::One(Change::Resource(uri))),
        );
        if !heard.notices.is_empty() {
            news.push(News::Notices);
        }
        news
    }
}

fn wake(mut heard: MutexGuard<'_, Heard>) {
    let waker = heard.waker.take();
    drop(heard);
    waker.into_iter().for_each(Waker::wake);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use pintle_proto::{
        Revision,
        server::{Arrival, Engine, Inbound, Service},
    };
    use pintle_types::{
        Frame,
        schema::{Implementation, ResourcesCapability, ServerCapabilities},
    };

    use super::*;

    /// A session that watches these.
    fn watching(uris: &[&str]) -> Engine {
        let mut can = ServerCapabilities::default();
        can.resources.insert(ResourcesCapability::default()).subscribe = Some(true);
        let service = Service::new(Implementation::new("s", "0"), can);
        let oldest = Revision::all().next_back().unwrap();
        let record = pintle_proto::server::SessionRecord::new(oldest);
        let mut engine = Engine::restore(&service, &record, 0).unwrap();
        for uri in uris {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
            );
            let frame = Frame::parse(text.as_bytes(), 1).unwrap();
            assert!(
                matches!(engine.receive(&service, frame, &Arrival::at(0)), Inbound::Reply(reply) if reply.result.is_ok())
            );
        }
        engine
    }

    fn ear(engine: &mut Engine) -> Ear {
        let ear = Ear::default();
        ear.follow(engine.listener().unwrap().watched());
        ear
    }

    fn updated(ear: &Ear, uri: String) {
        ear.hear(&Change::Resource(uri.into()));
    }

    fn taken(ear: &Ear) -> Vec<News> {
        ear.take(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_nobody_watches_is_not_collected() {
        let ear = ear(&mut watching(&["note://1"]));
        for n in 2..10_000 {
            updated(&ear, format!("note://{n}"));
        }
        assert!(lock(&ear.0).is_nothing());
        updated(&ear, "note://1/part".into());
        assert!(matches!(&taken(&ear)[..], [News::One(Change::Resource(uri))] if **uri == *"note://1/part"));
        // A subscription of the same connection is heard too, until it is gone.
        let mut other = watching(&["note://2"]);
        ear.follow(other.listener().unwrap().watched());
        updated(&ear, "note://2".into());
        assert_eq!(taken(&ear).len(), 1);
    }

    #[test]
    fn while_nobody_reads_one_mark_is_enough() {
        let ear = ear(&mut watching(&["note://1"]));
        updated(&ear, "note://1/0".into());
        ear.set_read(false);
        assert!(lock(&ear.0).updated.is_empty());
        for n in 0..10_000 {
            updated(&ear, format!("note://1/{n}"));
            ear.hear_notice(&Arc::new(Notice::new("x", "notifications/x", serde_json::json!({ "n": n }))));
        }
        assert!(lock(&ear.0).updated.is_empty());
        assert_eq!(lock(&ear.0).notices.len(), NOTICES.1);
        ear.set_read(true);
        assert!(matches!(&taken(&ear)[..], [News::EveryResource, News::Notices]));
        updated(&ear, "note://1/0".into());
        assert!(matches!(&taken(&ear)[..], [News::One(_), News::Notices]));
    }

    #[test]
    fn a_slow_listener_collects_so_many_bytes() {
        let ear = ear(&mut watching(&["note://1"]));
        let long = "x".repeat(1000);
        for n in 0..10_000 {
            updated(&ear, format!("note://1/{n}/{long}"));
            let heard = lock(&ear.0);
            assert!(heard.updated.iter().map(|uri| uri.len()).sum::<usize>() <= APART.1);
        }
        assert!(matches!(&taken(&ear)[..], [News::EveryResource]));
    }
}
