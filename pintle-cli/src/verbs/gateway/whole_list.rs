use std::{sync::Arc, time::Duration};

use pintle::{
    Client, Server,
    client::Mode,
    server::{Caller, Cx, ListKind, PageRequest, Provider, ProviderPage, RequestError},
    transport::memory,
};

/// The time that a backend has for its lists. After that, the other backends are listed without it.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The limits of a list of one backend, in entries, bytes and pages. The rest is left out.
pub(super) const MAX_ENTRIES: usize = 5_000;
const MAX_LIST_BYTES: usize = 8 << 20;
pub(super) const MAX_PAGES: usize = 200;

/// Reads a whole list, within limits. `cut` is called if there is more.
pub(super) async fn whole_list(
    provider: &impl Provider,
    cx: Cx,
    list: ListKind,
    mut page: PageRequest,
    cut: impl FnOnce(),
) -> Result<ProviderPage, RequestError> {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    page.cursor = None;
    for _ in 0..MAX_PAGES {
        let found = provider.list(cx.clone(), list, page.clone()).await?;
        for entry in found.entries {
            bytes += entry.as_str().len();
            if entries.len() == MAX_ENTRIES || bytes > MAX_LIST_BYTES {
                cut();
                return Ok(ProviderPage::new(entries));
            }
            entries.push(entry);
        }
        match found.cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(ProviderPage::new(entries)),
        }
    }
    cut();
    Ok(ProviderPage::new(entries))
}

/// Reads the lists of a provider, so that it is known what callers see of it before the first one lists: what it declares is hidden from
/// the others.
pub(super) async fn read_lists(provider: Arc<impl Provider>) {
    let (ours, theirs) = memory();
    let server = Server::new("gateway", env!("CARGO_PKG_VERSION")).provider(provider);
    let reading = async {
        let _serving = server.serve_to(ours, Caller::new())?;
        let client = Client::new("pintle", env!("CARGO_PKG_VERSION")).mode(Mode::Modern);
        let client = client.connect(theirs).await?;
        drop((client.tools().await, client.prompts().await));
        drop((client.resources().await, client.resource_templates().await));
        Ok::<_, pintle::Error>(())
    };
    // What cannot be read now is known when somebody has listed it.
    let _ = tokio::time::timeout(LIST_TIMEOUT, reading).await;
}
