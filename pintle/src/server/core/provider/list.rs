//! Lists over several providers.

use pintle_proto::server::{Body, Outcome};
use pintle_types::{RawObject, RawValue, RpcError};

use super::{entry::EntryRank, page::key, registry::RegisteredProvider};
use crate::server::{
    Cx, ListKind, PageRequest, RequestError,
    core::catalogue::{lists, source, source::PagePosition},
    printed_list::ListPage,
};

/// The number of pages of providers that one request reads.
const MAX_PROVIDER_PAGES: usize = 32;
/// The limits of the list of one provider, in pages and bytes of entries. The rest is left out.
const MAX_LISTED_PAGES: usize = 1_000;
const MAX_LISTED_BYTES: usize = 64 << 20;

/// Answers a list request of a server with providers: first the entries of the server, then those of each provider.
pub(crate) async fn list(cx: Cx, list: ListKind) -> Outcome {
    let text = match lists::cursor_text(&cx) {
        Ok(text) => text,
        Err(error) => return Outcome::Failed(error),
    };
    let position = text.and_then(|text| PagePosition::read(&cx, list.provider_letter(), &text));
    let (mut page, position, hint) = match position {
        Some(position) => (EntryPage::new(&cx), position, cx.snapshot().list_hint(list)),
        None => match own(&cx, list).await {
            Outcome::Cacheable(body, hint) if body.get("nextCursor").is_some() => {
                return Outcome::Cacheable(body, hint);
            }
            Outcome::Cacheable(body, hint) => match EntryPage::after(&cx, list, &body) {
                Ok(page) => (page, PagePosition::default(), hint),
                Err(error) => return Outcome::Failed(RpcError::internal(error.to_string())),
            },
            other => return other,
        },
    };
    let next = match fill(&cx, list, &mut page, position).await {
        Ok(next) => next,
        Err(error) => return error.outcome(cx.method(), None),
    };
    match page.finish(&cx, list, next.as_ref()) {
        Ok(body) => Outcome::Cacheable(body.into(), hint),
        Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
    }
}

/// Lists the entries of the server itself.
async fn own(cx: &Cx, list: ListKind) -> Outcome {
    match list {
        ListKind::Tools => lists::tools(cx),
        ListKind::Prompts => lists::prompts(cx),
        ListKind::Resources if !cx.snapshot().catalogue.sources.is_empty() => source::list(cx.clone()).await,
        ListKind::Resources => lists::resources(cx),
        ListKind::Templates => lists::templates(cx),
    }
}

/// Adds entries of providers to a page. Returns where the next page begins.
async fn fill(
    cx: &Cx,
    list: ListKind,
    page: &mut EntryPage,
    mut position: PagePosition,
) -> Result<Option<PagePosition>, RequestError> {
    let providers = &cx.snapshot().providers;
    let mut pages = 0;
    while let Some(known) = providers.get(position.source) {
        if !known.offers(list) {
            position = PagePosition { source: position.source + 1, ..PagePosition::default() };
            continue;
        }
        // An empty page may follow, but no provider is listed only to know whether one does.
        if page.is_full() || pages == MAX_PROVIDER_PAGES {
            return Ok(Some(position));
        }
        let request = PageRequest { cursor: position.cursor.clone(), limit: page.limit() };
        let found = known.provider.list(cx.clone(), list, request).await?;
        pages += 1;
        let backend = &known.info.name;
        let bytes: usize = found.entries.iter().map(|entry| entry.as_str().len()).sum();
        let first = position.continue_at(found.entries.len(), |at| {
            found.entries.get(at).and_then(|entry| key(list, entry)).unwrap_or_default()
        });
        for (behind, entry) in (first + 1..).zip(found.entries.into_iter().skip(first)) {
            let Some(key) = key(list, &entry) else { continue };
            if !is_shown(cx, known, (list, &entry), backend) || is_shadowed(cx, list, &key, position.source) {
                continue;
            }
            if page.is_full() {
                return Ok(Some(position));
            }
            (position.behind, position.key) = (behind, key);
            page.push(&entry);
        }
        let next = after(&position, found.cursor, bytes);
        if let Err(reason) = next {
            tracing::warn!(%backend, ?list, reason, "the rest of the list of a provider is left out");
        }
        let more = matches!(next, Ok(Some(_)));
        let following = PagePosition { source: position.source + 1, ..PagePosition::default() };
        position = next.ok().flatten().unwrap_or(following);
        // Without a page size, a page of the provider is one of the list.
        if more && page.size == usize::MAX && page.entries.count > 0 {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// Returns where the list of a provider continues after a page of so many bytes; `None` at its end.
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

/// Returns whether the gates of the server show an entry. If there are any, one that cannot be decoded is hidden.
fn is_shown(
    cx: &Cx,
    known: &RegisteredProvider,
    (list, entry): (ListKind, &RawObject),
    backend: &str,
) -> bool {
    cx.snapshot().gates.is_empty()
        || known
            .decode(list, entry)
            .is_some_and(|definition| lists::is_shown(cx, definition.entry(), Some(backend)))
}

/// Returns whether a call of this name would not reach this provider, because the server or an earlier provider has it. A template does
/// not have what another lists.
fn is_shadowed(cx: &Cx, list: ListKind, key: &str, provider: usize) -> bool {
    let (snapshot, target) = (cx.snapshot(), list.target(key.into()));
    let own = snapshot.own(cx.overlay_key(), &target).map(|own| own.rank());
    let before = || snapshot.providers.find(&cx.scope(), &target, provider, None).found;
    own == Some(EntryRank::Exact) || before().is_some_and(|found| found.rank == EntryRank::Exact)
}

/// A page of a list that is filled from several providers.
struct EntryPage {
    entries: ListPage,
    size: usize,
}

impl EntryPage {
    fn new(cx: &Cx) -> Self {
        let size = cx.snapshot().settings.lists.page;
        Self { entries: ListPage::default(), size }
    }

    /// Begins a page with the entries of another one.
    fn after(cx: &Cx, list: ListKind, body: &Body) -> Result<Self, serde_json::Error> {
        let mut page = Self::new(cx);
        let entries: Option<Vec<&RawValue>> = body.decode_member(list.member())?;
        entries.into_iter().flatten().for_each(|entry| page.entries.push(entry.get()));
        Ok(page)
    }

    fn is_full(&self) -> bool {
        self.entries.count >= self.size
    }

    fn limit(&self) -> usize {
        if self.size == usize::MAX { usize::MAX } else { self.size.saturating_sub(self.entries.count) }
    }

    fn push(&mut self, entry: &RawObject) {
        self.entries.push(entry.as_str());
    }

    fn finish(
        self,
        cx: &Cx,
        list: ListKind,
        next: Option<&PagePosition>,
    ) -> Result<RawObject, serde_json::Error> {
        let next = next.map(|position| position.print(cx, list.provider_letter()));
        self.entries.finish(list.member(), next.as_deref())
    }
}
