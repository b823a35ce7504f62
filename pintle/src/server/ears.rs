use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Waker},
};

use pintle_proto::server::Change;

use super::Notice;

/// Everybody who may want to hear of changes: one ear for each connection.
#[derive(Debug, Default)]
pub(crate) struct Ears(Mutex<Vec<Weak<Ear>>>);

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
    waker: Option<Waker>,
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
        let mut ears = lock(&self.0);
        ears.retain(|ear| ear.strong_count() > 0);
        ears.push(Arc::downgrade(&ear));
        ear
    }

    pub(crate) fn tell(&self, change: &Change) {
        let ears: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        ears.iter().for_each(|ear| ear.hear(change));
    }
}

impl Ears {
    pub(crate) fn tell_notice(&self, notice: &Arc<Notice>) {
        let ears: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        ears.iter().for_each(|ear| ear.hear_notice(notice));
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
        let waker = heard.waker.take();
        drop(heard);
        waker.into_iter().for_each(Waker::wake);
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
        let waker = heard.waker.take();
        drop(heard);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Takes what came; if nothing did, the task will be woken.
    pub(crate) fn take(&self, cx: &mut Context<'_>) -> Vec<News> {
        let mut heard = lock(&self.0);
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
        match &mut heard.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        news
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
