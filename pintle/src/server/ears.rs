use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Waker},
};

use pintle_proto::server::Change;

use super::Notice;

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
    updated: BTreeSet<Box<str>>,
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

/// Changed resources that are remembered one by one.
const APART: usize = 4096;

/// Notices of extensions that wait; of more the oldest is forgotten.
const NOTICES: usize = 1024;

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
        if heard.notices.len() >= NOTICES {
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
            Change::Resource(uri) if !heard.all_updated => {
                heard.updated.insert(uri.clone());
                if heard.updated.len() > APART {
                    heard.updated.clear();
                    heard.all_updated = true;
                }
            }
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
