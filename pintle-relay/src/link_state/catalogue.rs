use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use pintle::{
    client::{Change, Event},
    proto::http::HeaderParams,
    server::{ListKind, ProvidedEntry, Target},
    types::{
        RawObject,
        schema::{TaskSupport, Tool},
    },
    uri::{Template, TemplateIndex, Uri},
};
use tokio::time::Instant;

/// The time for which a list is not read again: to look for an entry that it does not have, or because nobody would have heard of a
/// change.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The limit of the templates of one server that URIs are matched with.
const MAX_TEMPLATES: usize = 1000;

/// The lists of the server behind, as one connection has seen them last.
#[derive(Debug, Default)]
pub(crate) struct LinkCatalogue {
    lists: Mutex<KnownLists>,
    /// Held by the caller that reads lists to look for an entry: others wait for what it finds.
    pub(crate) reading: tokio::sync::Mutex<()>,
}

/// The state of each list.
#[derive(Debug, Default)]
struct KnownLists([ListState; ListKind::ALL.len()]);

impl KnownLists {
    fn get(&self, kind: ListKind) -> &ListState {
        &self.0[Self::index(kind)]
    }

    fn get_mut(&mut self, kind: ListKind) -> &mut ListState {
        &mut self.0[Self::index(kind)]
    }

    fn index(kind: ListKind) -> usize {
        ListKind::ALL.iter().position(|list| *list == kind).unwrap_or_default()
    }
}

/// A list with its changes.
#[derive(Debug, Default)]
struct ListState {
    known: Option<Arc<KnownList>>,
    read: Option<Instant>,
    /// The number of changes that were reported.
    changes: u64,
    /// The mark at which the list was requested.
    requested: ChangeMark,
}

impl ListState {
    fn has_changed(&self) -> bool {
        self.changes != self.requested.changes
    }

    fn was_just_read(&self) -> bool {
        self.read.is_some_and(|read| read.elapsed() < MIN_INTERVAL)
    }
}

/// A point in time between the changes of a list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChangeMark {
    /// The number of changes that were reported.
    changes: u64,
    /// The period without a gap in which changes are reported; `None` if they are not.
    period: Option<u64>,
}

/// A list that was read to its end.
#[derive(Debug)]
pub(crate) struct KnownList {
    pub(crate) kind: ListKind,
    pub(crate) entries: Vec<RawObject>,
    by_key: HashMap<Box<str>, usize>,
    /// The resources whose canonical URI is not the one that they are listed by.
    by_uri: HashMap<Box<str>, usize>,
    /// The templates, compiled.
    templates: TemplateIndex<usize>,
    /// The entries that were looked up, decoded.
    decoded: Box<[OnceLock<Option<Box<ProvidedEntry>>>]>,
}

impl KnownList {
    fn new(kind: ListKind, entries: Vec<RawObject>) -> Self {
        let (mut by_key, mut by_uri) = (HashMap::with_capacity(entries.len()), HashMap::new());
        let mut templates = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            if let Ok(Some(key)) = entry.decode_member::<Box<str>>(kind.key()) {
                match kind {
                    ListKind::Resources => {
                        let uri = Uri::of(&key);
                        if uri.as_str() != &*key {
                            by_uri.entry(uri.as_str().into()).or_insert(at);
                        }
                    }
                    ListKind::Templates if templates.len() < MAX_TEMPLATES => {
                        templates.extend(Template::parse(&key).ok().map(|template| (template, at)));
                    }
                    _ => {}
                }
                by_key.entry(key).or_insert(at);
            }
        }
        if templates.len() == MAX_TEMPLATES && entries.len() > MAX_TEMPLATES {
            tracing::warn!(
                "a server has {} resource templates; the first {MAX_TEMPLATES} are used",
                entries.len()
            );
        }
        let decoded = entries.iter().map(|_| OnceLock::new()).collect();
        Self { kind, entries, by_key, by_uri, templates: TemplateIndex::new(templates), decoded }
    }

    /// Returns a list with these entries: one of those that are known, if it is the same. Each session of a client has read it, and
    /// it may be large.
    pub(crate) fn shared(kind: ListKind, entries: &[RawObject], known: [Option<Arc<Self>>; 2]) -> Arc<Self> {
        let is_same = |known: &Arc<Self>| known.kind == kind && known.entries == entries;
        let same = known.into_iter().flatten().find(is_same);
        same.unwrap_or_else(|| Arc::new(Self::new(kind, entries.to_vec())))
    }

    /// Returns the entry with this name or URI.
    pub(crate) fn get(&self, key: &str) -> Option<ProvidedEntry> {
        self.decoded(*self.by_key.get(key)?)
    }

    fn decoded(&self, at: usize) -> Option<ProvidedEntry> {
        let entry = self.entries.get(at)?;
        let decoded = self.decoded.get(at)?.get_or_init(|| provided(self.kind, entry).map(Box::new));
        decoded.as_deref().cloned()
    }

    /// Returns the resource of a URI, whatever spelling it is listed in; one that was listed byte for byte like this first.
    fn resource(&self, uri: &Uri) -> Option<ProvidedEntry> {
        let (sent, canonical) = (self.by_key.get(uri.sent()), || self.by_key.get(uri.as_str()));
        self.decoded(*sent.or_else(canonical).or_else(|| self.by_uri.get(uri.as_str()))?)
    }

    /// Returns the template that a URI matches best.
    fn matching(&self, uri: &Uri) -> Option<ProvidedEntry> {
        self.decoded(*self.templates.get(uri)?.value)
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.by_key.keys().map(|key| key.to_string()).collect()
    }
}

fn provided(kind: ListKind, entry: &RawObject) -> Option<ProvidedEntry> {
    use pintle::types::schema::{Prompt, Resource, ResourceTemplate};
    Some(match kind {
        ListKind::Tools => entry.decode::<Tool>().ok()?.into(),
        ListKind::Prompts => entry.decode::<Prompt>().ok()?.into(),
        ListKind::Resources => entry.decode::<Resource>().ok()?.into(),
        ListKind::Templates => entry.decode::<ResourceTemplate>().ok()?.into(),
        _ => return None,
    })
}

impl LinkCatalogue {
    /// Whether a list is known and has not changed. `period` is that in which changes are reported now: if the list was read in
    /// another one, or in none, a change may have been missed, and it is relied on for a moment only.
    pub(crate) fn is_fresh(&self, kind: ListKind, period: Option<u64>) -> bool {
        let lists = self.lock();
        let list = lists.get(kind);
        let is_reported = period.is_some() && list.requested.period == period;
        list.known.is_some() && !list.has_changed() && (is_reported || list.was_just_read())
    }

    /// Whether a list was read a moment ago, and no change was reported since.
    pub(crate) fn was_just_read(&self, kind: ListKind) -> bool {
        let lists = self.lock();
        let list = lists.get(kind);
        !list.has_changed() && list.was_just_read()
    }

    /// Returns a list as it was read last. It may have changed.
    pub(crate) fn last(&self, kind: ListKind) -> Option<Arc<KnownList>> {
        self.lock().get(kind).known.clone()
    }

    /// Returns the mark of a list that is requested now, for [`learn`](Self::learn). `period` is that in which changes are reported.
    pub(crate) fn mark(&self, kind: ListKind, period: Option<u64>) -> ChangeMark {
        ChangeMark { changes: self.lock().get(kind).changes, period }
    }

    /// Stores a list that was requested at this mark. If it has changed since, it is known to be outdated.
    pub(crate) fn learn(&self, list: Arc<KnownList>, requested: ChangeMark) {
        let mut lists = self.lock();
        let state = lists.get_mut(list.kind);
        state.read = Some(Instant::now());
        state.requested = requested;
        let before = state.known.replace(list);
        drop(lists);
        // Outside of the lock: it may be large.
        drop(before);
    }

    /// Takes over the lists of the connection before this one. They may have changed.
    pub(crate) fn inherit(&self, before: &Self) {
        for kind in ListKind::ALL {
            let Some(known) = before.last(kind) else { continue };
            let mut lists = self.lock();
            let state = lists.get_mut(kind);
            if state.known.is_none() && state.changes == 0 {
                *state = ListState { known: Some(known), changes: 1, ..ListState::default() };
            }
        }
    }

    /// Notes that lists have changed.
    fn note_changed(&self, kinds: &[ListKind]) {
        let mut lists = self.lock();
        for kind in kinds {
            lists.get_mut(*kind).changes += 1;
        }
    }

    /// Notes an event of the connection, and returns the changes that clients are notified of.
    pub(crate) fn note<'a>(&self, event: &'a Event) -> &'a [Change] {
        const ALL: &[Change] = &[Change::Tools, Change::Prompts, Change::Resources];
        let changes = match event {
            Event::Changed(change) => std::slice::from_ref(change),
            Event::Reopened | Event::Missed(_) => ALL,
            _ => &[],
        };
        for change in changes {
            match change {
                Change::Tools => self.note_changed(&[ListKind::Tools]),
                Change::Prompts => self.note_changed(&[ListKind::Prompts]),
                Change::Resources => self.note_changed(&[ListKind::Resources, ListKind::Templates]),
                _ => {}
            }
        }
        changes
    }

    /// Returns what is known of an entry.
    pub(crate) fn describe(&self, target: &Target<'_>) -> Option<ProvidedEntry> {
        // No lock is held while a list is searched.
        let list = |kind: ListKind| self.last(kind);
        match target {
            Target::Tool(name) => list(ListKind::Tools)?.get(name),
            Target::Prompt(name) => list(ListKind::Prompts)?.get(name),
            Target::Resource(uri) => {
                let uri = Uri::of(uri);
                let listed = list(ListKind::Resources).and_then(|list| list.resource(&uri));
                listed.or_else(|| list(ListKind::Templates)?.matching(&uri))
            }
            Target::Template(template) => {
                let named = list(ListKind::Templates).and_then(|list| list.get(template));
                named.or_else(|| list(ListKind::Resources)?.get(template))
            }
            _ => None,
        }
    }

    /// Returns the tool with this name.
    pub(crate) fn tool(&self, name: &str) -> Option<Tool> {
        let tools = self.last(ListKind::Tools)?;
        tools.entries.get(*tools.by_key.get(name)?)?.decode().ok()
    }

    /// Returns the arguments of the tool with this name that headers repeat; `None` if it is not known.
    pub(crate) fn header_params(&self, name: &str) -> Option<HeaderParams> {
        let tools = self.last(ListKind::Tools)?;
        let schema = tools.entries.get(*tools.by_key.get(name)?)?.get("inputSchema")?;
        HeaderParams::from_raw_schema(serde_json::from_str(schema).ok()?).ok()
    }

    /// Returns whether the tool with this name may run as a task, as far as the server says; `None` if it is not known.
    pub(crate) fn task_support(&self, name: &str) -> Option<Option<TaskSupport>> {
        let tools = self.last(ListKind::Tools)?;
        let tool = tools.entries.get(*tools.by_key.get(name)?)?;
        let execution: Option<RawObject> = tool.decode_member("execution").ok().flatten();
        Some(execution.and_then(|execution| execution.decode_member("taskSupport").ok().flatten()))
    }

    fn lock(&self) -> MutexGuard<'_, KnownLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<RawObject> {
        let printed =
            names.iter().map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#));
        printed.map(|tool| serde_json::from_str(&tool).unwrap()).collect()
    }

    #[test]
    fn a_list_that_is_the_same_is_in_memory_once() {
        let read = |names: &[&str], known| KnownList::shared(ListKind::Tools, &tools(names), known);
        let first = read(&["add", "roll"], [None, None]);
        let other = read(&["add"], [None, Some(first.clone())]);
        assert_eq!(other.entries.len(), 1);
        let again = read(&["add", "roll"], [Some(other), Some(first.clone())]);
        assert!(Arc::ptr_eq(&again, &first));
        let prompts = KnownList::shared(ListKind::Prompts, &tools(&["add", "roll"]), [Some(first), None]);
        assert_eq!(prompts.kind, ListKind::Prompts);
    }

    #[test]
    fn only_so_many_templates_are_matched() {
        let entry = |n: usize| format!(r#"{{"uriTemplate":"note://{n}/{{title}}","name":"n"}}"#);
        let entries: Vec<RawObject> = (0..1500).map(|n| serde_json::from_str(&entry(n)).unwrap()).collect();
        let list = KnownList::shared(ListKind::Templates, &entries, [None, None]);
        assert_eq!((list.entries.len(), list.templates.len()), (1500, MAX_TEMPLATES));
        assert!(list.matching(&Uri::of("NOTE://999/milk")).is_some());
        assert!(list.matching(&Uri::of("note://1000/milk")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_of_the_connection_before_is_known_and_not_relied_on() {
        let (before, catalogue) = (LinkCatalogue::default(), LinkCatalogue::default());
        let learn = |catalogue: &LinkCatalogue, kind, names: &[&str]| {
            let list = KnownList::shared(kind, &tools(names), [None, None]);
            catalogue.learn(list, catalogue.mark(kind, Some(1)));
        };
        learn(&before, ListKind::Tools, &["add"]);
        learn(&before, ListKind::Prompts, &["old"]);
        learn(&catalogue, ListKind::Prompts, &["new"]);
        catalogue.inherit(&before);
        assert_eq!(catalogue.last(ListKind::Tools).unwrap().keys(), ["add"]);
        assert!(!catalogue.is_fresh(ListKind::Tools, Some(1)));
        assert_eq!(catalogue.last(ListKind::Prompts).unwrap().keys(), ["new"]);
        assert!(catalogue.is_fresh(ListKind::Prompts, Some(1)));
        assert!(catalogue.last(ListKind::Resources).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_relied_on_as_long_as_no_change_can_have_been_missed() {
        let catalogue = LinkCatalogue::default();
        let read = |period| {
            let list = KnownList::shared(ListKind::Tools, &tools(&["add"]), [None, None]);
            catalogue.learn(list, catalogue.mark(ListKind::Tools, period));
        };
        let is_fresh = |period| catalogue.is_fresh(ListKind::Tools, period);
        assert!(!is_fresh(Some(1)));
        read(Some(1));
        tokio::time::advance(MIN_INTERVAL).await;
        assert!(is_fresh(Some(1)));
        assert!(!is_fresh(Some(3)), "the stream was interrupted");
        assert!(!is_fresh(None));
        read(None);
        assert!(is_fresh(None), "it was read a moment ago");
        tokio::time::advance(MIN_INTERVAL).await;
        assert!(!is_fresh(None) && !is_fresh(Some(3)));
        read(Some(3));
        catalogue.note(&Event::Changed(Change::Tools));
        assert!(!is_fresh(Some(3)));
    }
}
