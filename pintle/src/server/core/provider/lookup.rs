use super::entry::ProvidedEntry;
use crate::server::RequestError;

/// The result of a [`Provider`](crate::server::Provider) that looks up an entry.
///
/// ```
/// use pintle::{server::Lookup, types::{JsonObject, schema::Tool}};
///
/// let tools = [Tool::new("greet", JsonObject::new())];
/// let find = |name: &str| Lookup::from(tools.iter().find(|tool| tool.name == name).cloned());
/// assert!(matches!(find("greet"), Lookup::Found(_)));
/// assert!(matches!(find("leave"), Lookup::None));
/// ```
#[expect(clippy::exhaustive_enums, reason = "a provider around another one handles each")]
#[derive(Debug)]
pub enum Lookup {
    /// No entry of the provider.
    None,
    /// An entry of the provider.
    Found(ProvidedEntry),
    /// The need to read a list first, with the entry as it was known last, if it was. For a request, the server has the provider
    /// [read](crate::server::PageRequest::refresh) the lists and looks again, once. Nothing else waits for them.
    Stale(Option<ProvidedEntry>),
    /// The error for which it cannot be found out now whether there is such an entry. The error is returned to the client unless another provider has the entry.
    Failed(RequestError),
}

impl Lookup {
    /// Returns the entry, as far as it is known.
    pub fn known(self) -> Option<ProvidedEntry> {
        match self {
            Self::Found(entry) => Some(entry),
            Self::Stale(known) => known,
            Self::None | Self::Failed(_) => None,
        }
    }

    /// Changes the entry, or removes it, for a provider around another one.
    #[must_use]
    pub fn and_then(self, change: impl FnOnce(ProvidedEntry) -> Option<ProvidedEntry>) -> Self {
        match self {
            Self::Found(entry) => change(entry).into(),
            Self::Stale(Some(known)) => Self::Stale(change(known)),
            other => other,
        }
    }
}

impl<E: Into<ProvidedEntry>> From<Option<E>> for Lookup {
    fn from(found: Option<E>) -> Self {
        found.map_or(Self::None, |entry| Self::Found(entry.into()))
    }
}

impl From<ProvidedEntry> for Lookup {
    fn from(found: ProvidedEntry) -> Self {
        Self::Found(found)
    }
}
