use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use pintle::{
    server::{ListKind, ProviderPage},
    types::RawObject,
};

use super::catalogue::{ChangeMark, LinkCatalogue};
use crate::lock::lock;

/// The limit of the bytes of the pages that are kept of a list.
const MAX_BYTES: usize = 16 << 20;

/// The lists that clients are reading page by page: of each kind, the one that was begun last.
#[derive(Debug, Default)]
pub(crate) struct PagedLists(Mutex<HashMap<ListKind, PagedList>>);

/// The pages of a list that were read so far.
#[derive(Debug)]
struct PagedList {
    /// The lists of the connection over which it is read. Another one may have other entries.
    link: Weak<LinkCatalogue>,
    requested: ChangeMark,
    entries: Vec<RawObject>,
    bytes: usize,
    /// The cursor of the page that is next.
    next: String,
}

impl PagedLists {
    /// Adds the page that was read with a cursor. Returns the whole list, with the mark at which it was requested, if that was the last
    /// page.
    pub(crate) fn add(
        &self,
        link: &Arc<LinkCatalogue>,
        kind: ListKind,
        cursor: Option<&str>,
        page: &ProviderPage,
        requested: ChangeMark,
    ) -> Option<(Vec<RawObject>, ChangeMark)> {
        let link = Arc::downgrade(link);
        // Pages are copied and dropped without the lock: they are as large as the server makes them.
        let mut list = match cursor {
            None => PagedList { link, requested, entries: Vec::new(), bytes: 0, next: String::new() },
            Some(cursor) => {
                let mut lists = lock(&self.0);
                lists.get(&kind).filter(|list| list.next == cursor && list.link.ptr_eq(&link))?;
                lists.remove(&kind)?
            }
        };
        list.bytes += page.entries.iter().map(|entry| entry.as_str().len()).sum::<usize>();
        list.entries.extend_from_slice(&page.entries);
        let Some(next) = &page.cursor else { return Some((list.entries, list.requested)) };
        list.next.clone_from(next);
        let before = match list.bytes <= MAX_BYTES {
            true => lock(&self.0).insert(kind, list),
            false => lock(&self.0).remove(&kind),
        };
        drop(before);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(entry: &str, cursor: Option<&str>) -> ProviderPage {
        let mut page = ProviderPage::new(vec![serde_json::from_str(entry).unwrap()]);
        page.cursor = cursor.map(str::to_owned);
        page
    }

    #[test]
    fn the_pages_of_one_reader_are_a_list() {
        let (lists, one, other) = (PagedLists::default(), Arc::default(), Arc::default());
        let add = |link: &Arc<LinkCatalogue>, cursor: Option<&str>, page: &ProviderPage| {
            let whole = lists.add(link, ListKind::Tools, cursor, page, ChangeMark::default());
            whole.map(|(entries, _)| entries.len())
        };
        let (first, last) = (page(r#"{"name":"a"}"#, Some("2")), page(r#"{"name":"b"}"#, None));
        assert_eq!(add(&one, Some("2"), &last), None, "nobody has read what is before it");
        assert_eq!(add(&one, None, &first), None);
        assert_eq!(add(&other, Some("2"), &last), None, "another connection has another list");
        assert_eq!(add(&one, Some("3"), &last), None);
        assert_eq!(add(&one, Some("2"), &last), Some(2));
        assert_eq!(add(&one, Some("2"), &last), None);
        assert_eq!(add(&one, None, &last), Some(1));
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let (lists, link) = (PagedLists::default(), Arc::default());
        let large = page(&format!(r#"{{"name":"{}"}}"#, "a".repeat(MAX_BYTES / 2)), Some("next"));
        let add = |cursor, page| lists.add(&link, ListKind::Tools, cursor, page, ChangeMark::default());
        for cursor in [None, Some("next"), Some("next")] {
            assert!(add(cursor, &large).is_none());
        }
        assert!(lock(&lists.0).is_empty());
    }
}
