use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle_types::{RawObject, schema::Tool};
use pintle_uri::Template;

use crate::{
    client::{Change, Event},
    server::{ListKind, ProvidedEntry, Target},
};

/// The lists of the server behind, as one connection has seen them last.
#[derive(Debug, Default)]
pub(super) struct LinkCatalogue(Mutex<HashMap<ListKind, Arc<KnownList>>>);

/// A list that was read to its end.
#[derive(Debug)]
pub(super) struct KnownList {
    kind: ListKind,
    pub(super) entries: Vec<RawObject>,
    by_key: HashMap<Box<str>, usize>,
    /// Whether it has changed since.
    outdated: bool,
}

impl KnownList {
    pub(super) fn new(kind: ListKind, entries: Vec<RawObject>) -> Self {
        let mut by_key = HashMap::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            if let Ok(Some(key)) = entry.decode_member::<Box<str>>(kind.key()) {
                by_key.entry(key).or_insert(at);
            }
        }
        Self { kind, entries, by_key, outdated: false }
    }

    /// Returns the entry with this name or URI.
    pub(super) fn get(&self, key: &str) -> Option<ProvidedEntry> {
        let entry = self.entries.get(*self.by_key.get(key)?)?;
        provided(self.kind, entry)
    }

    /// Returns the template that a URI matches.
    fn matching(&self, uri: &str) -> Option<ProvidedEntry> {
        let matches = |template: &str| Template::parse(template).is_ok_and(|it| it.matches(uri).is_some());
        let (_, at) = self.by_key.iter().find(|(template, _)| matches(template))?;
        provided(self.kind, self.entries.get(*at)?)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.by_key.keys().map(|key| key.to_string()).collect()
    }
}

fn provided(kind: ListKind, entry: &RawObject) -> Option<ProvidedEntry> {
    use pintle_types::schema::{Prompt, Resource, ResourceTemplate};
    Some(match kind {
        ListKind::Tools => entry.decode::<Tool>().ok()?.into(),
        ListKind::Prompts => entry.decode::<Prompt>().ok()?.into(),
        ListKind::Resources => entry.decode::<Resource>().ok()?.into(),
        ListKind::Templates => entry.decode::<ResourceTemplate>().ok()?.into(),
    })
}

impl LinkCatalogue {
    /// Whether a list is known and has not changed.
    pub(super) fn is_fresh(&self, kind: ListKind) -> bool {
        self.lock().get(&kind).is_some_and(|list| !list.outdated)
    }

    /// Returns a list as it was read last. It may have changed.
    pub(super) fn last(&self, kind: ListKind) -> Option<Arc<KnownList>> {
        self.lock().get(&kind).cloned()
    }

    pub(super) fn learn(&self, list: KnownList) -> Arc<KnownList> {
        let list = Arc::new(list);
        self.lock().insert(list.kind, list.clone());
        list
    }

    /// Notes that lists have changed.
    fn outdate(&self, kinds: &[ListKind]) {
        let mut lists = self.lock();
        for kind in kinds {
            if let Some(list) = lists.get_mut(kind) {
                let KnownList { kind, ref entries, ref by_key, .. } = **list;
                let (entries, by_key) = (entries.clone(), by_key.clone());
                *list = Arc::new(KnownList { kind, entries, by_key, outdated: true });
            }
        }
    }

    /// Notes an event of the connection, and returns the changes that clients are notified of.
    pub(super) fn note<'a>(&self, event: &'a Event) -> &'a [Change] {
        const ALL: &[Change] = &[Change::Tools, Change::Prompts, Change::Resources];
        let changes = match event {
            Event::Changed(change) => std::slice::from_ref(change),
            Event::Reopened | Event::Missed(_) => ALL,
            Event::Notification(_) => &[],
        };
        for change in changes {
            match change {
                Change::Tools => self.outdate(&[ListKind::Tools]),
                Change::Prompts => self.outdate(&[ListKind::Prompts]),
                Change::Resources => self.outdate(&[ListKind::Resources, ListKind::Templates]),
                _ => {}
            }
        }
        changes
    }

    /// Returns what is known of an entry.
    pub(super) fn describe(&self, target: &Target<'_>) -> Option<ProvidedEntry> {
        let lists = self.lock();
        let list = |kind: ListKind| lists.get(&kind);
        match target {
            Target::Tool(name) => list(ListKind::Tools)?.get(name),
            Target::Prompt(name) => list(ListKind::Prompts)?.get(name),
            Target::Resource(uri) => list(ListKind::Resources)
                .and_then(|list| list.get(uri))
                .or_else(|| list(ListKind::Templates)?.matching(uri)),
            Target::Template(template) => list(ListKind::Templates)
                .and_then(|list| list.get(template))
                .or_else(|| list(ListKind::Resources)?.get(template)),
            Target::Task(_) => None,
        }
    }

    /// Returns the tool with this name.
    pub(super) fn tool(&self, name: &str) -> Option<Tool> {
        let tools = self.last(ListKind::Tools)?;
        tools.entries.get(*tools.by_key.get(name)?)?.decode().ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ListKind, Arc<KnownList>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the lists that a target may be in.
pub(super) fn lists_of(target: &Target<'_>) -> &'static [ListKind] {
    match target {
        Target::Tool(_) => &[ListKind::Tools],
        Target::Prompt(_) => &[ListKind::Prompts],
        Target::Resource(_) | Target::Template(_) => &[ListKind::Resources, ListKind::Templates],
        Target::Task(_) => &[],
    }
}
