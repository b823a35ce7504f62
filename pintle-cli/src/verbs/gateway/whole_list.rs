use std::time::Duration;

use pintle::server::{Cx, ListKind, PageRequest, Provider, ProviderPage, RequestError};

/// The time that a backend has for its lists. After that, the other backends are listed without it.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The limits of a list of one backend, in entries, bytes and pages. The rest is left out.
pub(super) const MAX_ENTRIES: usize = 5_000;
const MAX_LIST_BYTES: usize = 8 << 20;
pub(super) const MAX_PAGES: usize = 200;

/// Reads a whole list, within limits.
pub(super) async fn whole_list(
    provider: &impl Provider,
    cx: Cx,
    list: ListKind,
    mut page: PageRequest,
) -> Result<ProviderPage, RequestError> {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    page.cursor = None;
    for _ in 0..MAX_PAGES {
        let found = provider.list(cx.clone(), list, page.clone()).await?;
        for entry in found.entries {
            bytes += entry.as_str().len();
            if entries.len() == MAX_ENTRIES || bytes > MAX_LIST_BYTES {
                return Ok(ProviderPage::new(entries));
            }
            entries.push(entry);
        }
        match found.cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    Ok(ProviderPage::new(entries))
}
