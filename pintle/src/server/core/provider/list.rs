//! The lists of a server: the tools of a session and of a principal, its routes, its sources, and then its providers, each in its order.

use std::sync::Arc;

use pintle_proto::{
    TaskKind,
    server::{Body, Outcome},
};
use pintle_types::{RawObject, RpcError};

use super::{definition::Definition, page::key, registry::RegisteredProvider};
use crate::server::{
    Cx, Entry, ListKind, PageRequest, ProviderPage, RequestError,
    core::{
        catalogue::{
            lists,
            options::CatalogueRoute,
            overlay::Overlay,
            source::{PagePosition, SourceRoute},
        },
        snapshot::Snapshot,
    },
    ordered_map::OrderedMap,
    printed_list::{ListPage, PrintedList},
};

/// The number of pages of sources and providers that one request reads.
const MAX_PAGES: usize = 32;
/// The limits of the list of one source or provider, in pages and bytes of entries. The rest is left out.
const MAX_LISTED_PAGES: usize = 1_000;
const MAX_LISTED_BYTES: usize = 64 << 20;

/// Answers a list request.
pub(crate) async fn list(cx: Cx, list: ListKind) -> Outcome {
    match body(&cx, list).await {
        Ok(body) => Outcome::Cacheable(body, cx.snapshot().list_hint(list)),
        Err(error) => error.outcome(cx.method(), None),
    }
}

async fn body(cx: &Cx, list: ListKind) -> Result<Body, RequestError> {
    let position = ListPosition::read(cx, list).map_err(RequestError::protocol)?;
    let overlay = Overlay::of(cx);
    let printed = printed(cx, list);
    let is_shared =
        position == ListPosition::START && overlay.is_empty() && cx.snapshot().is_printed_once(list);
    if let Some(body) = printed.whole.get().filter(|_| is_shared) {
        return Ok(Body::Shared(body.clone()));
    }
    let mut page = EntryPage::new(cx);
    let next = fill(cx, list, &overlay, &mut page, position).await?;
    let body = page.entries.finish(list.member(), next.map(|next| next.print(cx, list)).as_deref())?;
    Ok(match is_shared {
        true => Body::Shared(printed.whole.get_or_init(|| Arc::new(body)).clone()),
        false => body.into(),
    })
}

impl Snapshot {
    /// Returns whether a list is the same for everybody and on one page: then it is printed once.
    fn is_printed_once(&self, list: ListKind) -> bool {
        let is_asked = self.asked(list).any(|asked| asked.offers(list));
        !is_asked && !self.list_depends(list) && self.settings.lists.page == usize::MAX
    }

    /// Returns the sources, then the providers.
    fn asked(&self, list: ListKind) -> impl Iterator<Item = Asked<'_>> {
        let all = [AskedKind::Source, AskedKind::Provider];
        all.into_iter().flat_map(move |kind| (0..).map_while(move |number| kind.get(self, list, number)))
    }
}

/// Returns the texts of the routes of a list.
fn printed(cx: &Cx, list: ListKind) -> &PrintedList {
    let printed = &cx.snapshot().catalogue.printed;
    match list {
        ListKind::Tools if has_execution(cx) => &printed.task_tools,
        ListKind::Tools => &printed.tools,
        ListKind::Prompts => &printed.prompts,
        ListKind::Resources => &printed.resources,
        ListKind::Templates => &printed.templates,
    }
}

/// Returns whether calls may be intercepted, as extensions for tasks do.
fn is_intercepted(cx: &Cx) -> bool {
    !cx.snapshot().settings.extensions.interceptors.is_empty()
}

/// Returns whether the definition of a tool says how it may be run: where clients request tasks, and not where the server decides.
fn has_execution(cx: &Cx) -> bool {
    is_intercepted(cx) && cx.facts().tasks == TaskKind::Protocol
}

/// The position at which a page ended.
#[derive(Debug, PartialEq)]
enum ListPosition {
    /// After the entry of this number in a section of what the server has itself.
    Own { section: usize, place: u64 },
    /// In a source or a provider.
    Asked(AskedKind, PagePosition),
}

impl ListPosition {
    const START: Self = Self::Own { section: 0, place: 0 };

    fn read(cx: &Cx, list: ListKind) -> Result<Self, RpcError> {
        let Some(text) = lists::cursor_text(cx)? else { return Ok(Self::START) };
        let read = cx.open_cursor(&text).and_then(|bytes| {
            let (letter, place) = bytes.split_first()?;
            if let Some(section) = list.own_letters().iter().position(|own| own == letter) {
                return Some(Self::Own { section, place: u64::from_be_bytes(place.try_into().ok()?) });
            }
            let mut kinds = [AskedKind::Source, AskedKind::Provider].into_iter();
            let kind = kinds.find(|kind| kind.letter(list) == Some(*letter))?;
            Some(Self::Asked(kind, PagePosition::decode(*letter, &bytes)?))
        });
        read.ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            RpcError::invalid_params(format!(
                "`{shown}` is not a cursor of this list: start again without one"
            ))
        })
    }

    /// Encodes the position for the caller. It begins with a letter of the list, so that no other list accepts it.
    fn print(&self, cx: &Cx, list: ListKind) -> String {
        match self {
            Self::Own { section, place } => {
                let letter = list.own_letters().get(*section).copied().unwrap_or_default();
                cx.seal_cursor(&[&[letter], &place.to_be_bytes()[..]].concat())
            }
            Self::Asked(kind, position) => position.print(cx, kind.letter(list).unwrap_or_default()),
        }
    }
}

/// Those who are asked for their entries.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AskedKind {
    Source,
    Provider,
}

impl AskedKind {
    /// Returns the first byte of cursors that continue in one of them; `None` if they have no entries of this list.
    fn letter(self, list: ListKind) -> Option<u8> {
        match self {
            Self::Source => (list == ListKind::Resources).then_some(b's'),
            Self::Provider => Some(list.provider_letter()),
        }
    }

    fn get(self, snapshot: &Snapshot, list: ListKind, number: usize) -> Option<Asked<'_>> {
        self.letter(list)?;
        match self {
            Self::Source => snapshot.catalogue.sources.get(number).map(Asked::Source),
            Self::Provider => snapshot.providers.get(number).map(Asked::Provider),
        }
    }
}

/// One who is asked for its entries.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Source(&'a SourceRoute),
    Provider(&'a RegisteredProvider),
}

impl Asked<'_> {
    fn offers(self, list: ListKind) -> bool {
        match self {
            Self::Source(_) => true,
            Self::Provider(known) => known.offers(list),
        }
    }

    fn is_visible(self, cx: &Cx) -> bool {
        match self {
            Self::Source(route) => route.required.shows(cx.left()),
            Self::Provider(_) => true,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Source(_) => "a source",
            Self::Provider(known) => &known.info.name,
        }
    }

    async fn page(self, cx: &Cx, list: ListKind, request: PageRequest) -> Result<ProviderPage, RequestError> {
        match self {
            Self::Source(route) => {
                let found = route.source.list(cx.clone(), request).await?;
                Ok(ProviderPage { cursor: found.cursor, ..ProviderPage::of(found.resources)? })
            }
            Self::Provider(known) => known.provider.list(cx.clone(), list, request).await,
        }
    }

    /// Returns whether the caller sees an entry, and a call of it comes to the one who has it.
    fn shows(self, cx: &Cx, list: ListKind, number: usize, key: &str, entry: &RawObject) -> bool {
        let (gates, scope) = (&cx.snapshot().gates, cx.scope());
        match self {
            Self::Source(_) => gates.shows_read(&scope, None, || Definition::decode(list, entry)),
            Self::Provider(known) => {
                gates.shows_read(&scope, Some(&known.info.name), || known.decode(list, entry))
                    && !is_shadowed(cx, list, key, number)
            }
        }
    }
}

/// Adds entries to a page. Returns where the next page begins.
async fn fill(
    cx: &Cx,
    list: ListKind,
    overlay: &Overlay,
    page: &mut EntryPage,
    from: ListPosition,
) -> Result<Option<ListPosition>, RequestError> {
    let (mut kind, mut position) = match from {
        ListPosition::Own { section, place } => {
            if let Some((section, place)) = fill_own(cx, list, overlay, page, (section, place))? {
                return Ok(Some(ListPosition::Own { section, place }));
            }
            (AskedKind::Source, PagePosition::default())
        }
        ListPosition::Asked(kind, position) => (kind, position),
    };
    let mut pages = 0;
    loop {
        if let Some(position) = fill_asked(cx, list, kind, page, position, &mut pages).await? {
            return Ok(Some(ListPosition::Asked(kind, position)));
        }
        (kind, position) = match kind {
            AskedKind::Source => (AskedKind::Provider, PagePosition::default()),
            AskedKind::Provider => return Ok(None),
        };
    }
}

/// Adds entries of the server itself to a page. Returns the section and the number of the last one, if others follow.
fn fill_own(
    cx: &Cx,
    list: ListKind,
    overlay: &Overlay,
    page: &mut EntryPage,
    from: (usize, u64),
) -> Result<Option<(usize, u64)>, serde_json::Error> {
    let catalogue = &cx.snapshot().catalogue;
    match list {
        ListKind::Tools => {
            let [session, principal] = overlay.tools();
            page.add_routes(cx, list, &[session, principal, Some(&catalogue.tools)], from)
        }
        ListKind::Prompts => page.add_routes(cx, list, &[Some(&catalogue.prompts)], from),
        ListKind::Resources => page.add_routes(cx, list, &[Some(&catalogue.resources)], from),
        ListKind::Templates => page.add_routes(cx, list, &[Some(&catalogue.templates)], from),
    }
}

/// Adds entries of sources or providers to a page. Returns where the next page begins.
async fn fill_asked(
    cx: &Cx,
    list: ListKind,
    kind: AskedKind,
    page: &mut EntryPage,
    mut position: PagePosition,
    pages: &mut usize,
) -> Result<Option<PagePosition>, RequestError> {
    while let Some(asked) = kind.get(cx.snapshot(), list, position.source) {
        let following = PagePosition { source: position.source + 1, ..PagePosition::default() };
        if !asked.offers(list) || !asked.is_visible(cx) {
            position = following;
            continue;
        }
        // An empty page may follow, but nobody is asked only to know whether one does.
        if page.is_full() || *pages == MAX_PAGES {
            return Ok(Some(position));
        }
        let request = PageRequest { cursor: position.cursor.clone(), limit: page.limit() };
        let found = asked.page(cx, list, request).await?;
        *pages += 1;
        let bytes: usize = found.entries.iter().map(|entry| entry.as_str().len()).sum();
        let first = position.continue_at(found.entries.len(), |at| {
            found.entries.get(at).and_then(|entry| key(list, entry)).unwrap_or_default()
        });
        for (behind, entry) in (first + 1..).zip(found.entries.into_iter().skip(first)) {
            let Some(key) = key(list, &entry) else { continue };
            if !asked.shows(cx, list, position.source, &key, &entry) {
                continue;
            }
            if page.is_full() {
                return Ok(Some(position));
            }
            (position.behind, position.key) = (behind, key);
            page.entries.push(entry.as_str());
        }
        let next = after(&position, found.cursor, bytes);
        if let Err(reason) = next {
            tracing::warn!(name = asked.name(), ?list, reason, "the rest of a list is left out");
        }
        let more = matches!(next, Ok(Some(_)));
        position = next.ok().flatten().unwrap_or(following);
        // Without a page size, a page of a source or provider is one of the list.
        if more && page.size == usize::MAX && page.entries.count > 0 {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// Returns where the list of a source or provider continues after a page of so many bytes; `None` at its end.
///
/// # Errors
///
/// The reason why the list is not continued: it has no end, or is too long.
fn after(
    position: &PagePosition,
    cursor: Option<String>,
    bytes: usize,
) -> Result<Option<PagePosition>, &'static str> {
    if cursor.is_none() {
        return Ok(None);
    }
    let (pages, bytes) = (position.pages.saturating_add(1), position.bytes.saturating_add(bytes));
    if cursor == position.cursor {
        return Err("its next page is the same again");
    }
    if pages >= MAX_LISTED_PAGES || bytes >= MAX_LISTED_BYTES {
        return Err("it has too many pages or bytes");
    }
    Ok(Some(PagePosition { source: position.source, cursor, pages, bytes, ..PagePosition::default() }))
}

/// Returns whether a call of this name would not reach this provider, because the server or an earlier provider has it. A template does
/// not have what another lists.
fn is_shadowed(cx: &Cx, list: ListKind, key: &str, provider: usize) -> bool {
    let (snapshot, target) = (cx.snapshot(), list.target(key.into()));
    let own = snapshot.own(cx.overlay_key(), &target);
    let before = snapshot.providers.find(|| cx.scope(), &target, provider, own);
    before.found.is_some_and(|found| found.is_exact())
}

/// Prints an entry of the server itself.
fn print(cx: &Cx, entry: Entry<'_>) -> Result<String, serde_json::Error> {
    match entry {
        Entry::Tool(tool) if tool.execution.is_some() && is_intercepted(cx) && !has_execution(cx) => {
            let mut tool = tool.clone();
            tool.execution = None;
            serde_json::to_string(&tool)
        }
        Entry::Tool(tool) => serde_json::to_string(tool),
        Entry::Prompt(prompt) => serde_json::to_string(prompt),
        Entry::Resource(resource) => serde_json::to_string(resource),
        Entry::Template(template) => serde_json::to_string(template),
        Entry::Method(name) => serde_json::to_string(name),
    }
}

/// A page of a list that is filled from several sections.
struct EntryPage {
    entries: ListPage,
    size: usize,
}

impl EntryPage {
    fn new(cx: &Cx) -> Self {
        let size = cx.snapshot().settings.lists.page;
        Self { entries: ListPage::default(), size }
    }

    fn is_full(&self) -> bool {
        self.entries.count >= self.size
    }

    fn limit(&self) -> usize {
        if self.size == usize::MAX { usize::MAX } else { self.size.saturating_sub(self.entries.count) }
    }

    /// Adds what the caller sees of several sections, of which the last are the routes for everybody: each of those is printed once,
    /// whoever sees it. An entry of an earlier section is in the place of a later one. Returns the section and the number of the last
    /// entry, if others follow.
    fn add_routes<R: CatalogueRoute>(
        &mut self,
        cx: &Cx,
        list: ListKind,
        sections: &[Option<&OrderedMap<R>>],
        from: (usize, u64),
    ) -> Result<Option<(usize, u64)>, serde_json::Error> {
        let mut last = from;
        for (section, routes) in sections.iter().enumerate().skip(from.0) {
            let Some(routes) = routes else { continue };
            let before = sections.get(..section).unwrap_or_default();
            let is_taken = |name: &str| before.iter().flatten().any(|routes| routes.get(name).is_some());
            let is_last = section + 1 == sections.len();
            let print = |route: &R| print(cx, route.entry());
            let texts = is_last.then(|| printed(cx, list).entries(routes, print)).transpose()?;
            let place = if section == from.0 { from.1 } else { 0 };
            for (number, route) in routes.after(place) {
                if is_taken(route.key()) || !lists::sees(cx, route) {
                    continue;
                }
                if self.is_full() {
                    return Ok(Some(last));
                }
                match texts.as_ref().and_then(|texts| texts.get(&number)) {
                    Some(text) => self.entries.push(text),
                    None => self.entries.push(&print(route)?),
                }
                last = (section, number);
            }
        }
        Ok(None)
    }
}
