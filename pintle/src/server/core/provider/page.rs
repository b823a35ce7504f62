use pintle_types::RawObject;
use serde::Serialize;

use crate::server::{ListKind, RequestError};

/// A page of a list of a [`Provider`](crate::server::Provider).
///
/// ```
/// use pintle::server::ProviderPage;
/// use pintle::types::schema::Resource;
///
/// let page = ProviderPage::of([Resource::new("row://1", "1"), Resource::new("row://2", "2")])?.next("2");
/// assert_eq!(page.entries[1].get("uri"), Some(r#""row://2""#));
/// # Ok::<(), pintle::server::RequestError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct ProviderPage {
    /// The entries, as clients get them. One without its name or URI is left out.
    pub entries: Vec<RawObject>,
    /// The cursor of the next page; `None` for the last one.
    pub cursor: Option<String>,
}

impl ProviderPage {
    /// Creates a page without a next one.
    pub fn new(entries: Vec<RawObject>) -> Self {
        Self { entries, cursor: None }
    }

    /// Creates a page of tools, prompts, resources or templates, without a next one.
    ///
    /// # Errors
    ///
    /// An entry cannot be serialized as an object.
    pub fn of<T: Serialize>(entries: impl IntoIterator<Item = T>) -> Result<Self, RequestError> {
        let entries = entries.into_iter().map(|entry| RawObject::from_serialize(&entry));
        Ok(Self::new(entries.collect::<Result<_, _>>()?))
    }

    /// Sets the cursor of the next page.
    #[must_use]
    pub fn next(self, cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), ..self }
    }
}

/// Returns the name, URI or URI template of an entry of this list.
pub(crate) fn key(list: ListKind, entry: &RawObject) -> Option<String> {
    entry.decode_member(list.key()).ok().flatten()
}
