use std::{fmt, future::Future, pin::Pin, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::schema::{ReadResourceResult, Resource};

use super::resource;
use crate::server::{
    Access, Cx, Entry, RequestError,
    access::required::Required,
    core::{
        driver::run::{HandlerFuture, run_claimed},
        gate::admission::{AccessRefusal, Used, admit},
    },
};

/// A source of resources that may change at any time: the files of a directory, the rows of a table.
///
/// [`Directory`](crate::directory::Directory) is one.
///
/// ```
/// use pintle::server::{Cx, PageRequest, RequestError, ResourcePage, ResourceSource};
/// use pintle::types::schema::{ReadResourceResult, Resource, ResourceContents};
///
/// struct Squares;
///
/// impl ResourceSource for Squares {
///     async fn list(&self, _cx: Cx, page: PageRequest) -> Result<ResourcePage, RequestError> {
///         let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
///         let numbers = (first..1000).take(page.limit);
///         let next = first.saturating_add(page.limit);
///         let page: ResourcePage =
///             numbers.map(|n| Resource::new(format!("square://{n}"), n.to_string())).collect();
///         Ok(if next < 1000 { page.next(next.to_string()) } else { page })
///     }
///
///     fn describe(&self, uri: &str) -> Option<Resource> {
///         let number: u32 = uri.strip_prefix("square://")?.parse().ok()?;
///         Some(Resource::new(format!("square://{number}"), number.to_string()))
///     }
///
///     async fn read(&self, _cx: Cx, uri: String) -> Result<ReadResourceResult, RequestError> {
///         let number: u32 = uri.trim_start_matches("square://").parse()?;
///         Ok(ReadResourceResult::new(vec![ResourceContents::text(uri, (number * number).to_string())]))
///     }
/// }
/// # let _ = pintle::Server::new("s", "0").source(Squares);
/// ```
pub trait ResourceSource: Send + Sync + 'static {
    /// Returns a page of the resources, which are always in the same order.
    ///
    /// A short list is collected into one page, whatever is requested: the server divides it. A source that ignores the
    /// request is listed anew for every page of a client. After 1,000 pages or 64 MiB, the rest is left out, with a warning in the
    /// log.
    fn list(
        &self,
        cx: Cx,
        page: PageRequest,
    ) -> impl Future<Output = Result<ResourcePage, RequestError>> + Send;

    /// Returns what is known of a URI without I/O; `None` if it is not one of this source, whether the resource exists or not.
    ///
    /// [Filters](crate::server::Server::filter) decide by the result whether a client is notified of a change, so a resource
    /// must have one `uri` regardless of how the client spelled it.
    fn describe(&self, uri: &str) -> Option<Resource>;

    /// Returns the resource of a URI that [`describe`](Self::describe) recognizes, as [`list`](Self::list) returns it; `None` if
    /// it does not exist. Filters decide by the result whether it may be read. The default is the result of `describe`.
    fn find(&self, cx: Cx, uri: &str) -> impl Future<Output = Result<Option<Resource>, RequestError>> + Send {
        let _ = cx;
        std::future::ready(Ok(self.describe(uri)))
    }

    /// Reads a resource that [`find`](Self::find) returned.
    fn read(
        &self,
        cx: Cx,
        uri: String,
    ) -> impl Future<Output = Result<ReadResourceResult, RequestError>> + Send;
}

/// A request for a page of a [`ResourceSource`].
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageRequest {
    /// The cursor of the page, as an earlier page returned it; `None` for the first page. It was sent through the client, sealed.
    pub cursor: Option<String>,
    /// The number of resources that are wanted; `usize::MAX` if the server has no [page size](crate::server::Server::page_size), 0 if
    /// the list is only [read again](Self::refresh).
    pub limit: usize,
}

impl PageRequest {
    /// Creates a request of the first page, for a provider that reads the list of another one.
    pub fn first() -> Self {
        Self { cursor: None, limit: usize::MAX }
    }

    /// Creates a request to read the list again where it may have changed, so that [`Provider::find`](crate::server::Provider::find)
    /// knows it. The entries that are returned are dropped.
    pub fn refresh() -> Self {
        Self { cursor: None, limit: 0 }
    }

    /// Returns whether the list is only read again.
    pub fn is_refresh(&self) -> bool {
        self.limit == 0
    }
}

/// A page of a [`ResourceSource`]. Collect resources for a page without a next one.
///
/// ```
/// use pintle::server::ResourcePage;
/// use pintle::types::schema::Resource;
///
/// let rows = ["row://1", "row://2"];
/// let page: ResourcePage = rows.into_iter().map(|uri| Resource::new(uri, uri)).collect();
/// assert_eq!(page.next("2").cursor.as_deref(), Some("2"));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct ResourcePage {
    /// The resources.
    pub resources: Vec<Resource>,
    /// The cursor of the next page; `None` for the last one.
    pub cursor: Option<String>,
}

impl ResourcePage {
    /// Creates a page without a next one.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self { resources, cursor: None }
    }

    /// Sets the cursor of the next page.
    #[must_use]
    pub fn next(self, cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), ..self }
    }
}

impl FromIterator<Resource> for ResourcePage {
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> Self {
        Self::new(resources.into_iter().collect())
    }
}

/// A [`ResourceSource`], and the rights that it requires: see [`source`].
#[derive(Clone)]
pub struct SourceRoute {
    pub(crate) source: Arc<dyn AnySource>,
    pub(crate) required: Required,
}

/// Creates a route of a source, for one that requires rights.
///
/// ```
/// use pintle::{Server, directory::Directory, server::source};
///
/// let notes = source(Directory::new(".").unwrap()).requires(["notes:read"]);
/// let server = Server::new("notes", "1.0.0").source(notes);
/// # server.check().unwrap();
/// ```
pub fn source(source: impl ResourceSource) -> SourceRoute {
    SourceRoute { source: Arc::new(source), required: Required::default() }
}

impl SourceRoute {
    /// Adds rights that a caller needs to read its resources and to watch them. Over HTTP, a request without them gets a response that
    /// names them.
    #[must_use]
    pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
        self.required.add(rights);
        self
    }

    /// Hides its resources from callers who lack a right that it [requires](Self::requires).
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.required.hide();
        self
    }
}

impl<S: ResourceSource> From<S> for SourceRoute {
    fn from(found: S) -> Self {
        source(found)
    }
}

impl fmt::Debug for SourceRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceRoute").field("required", &self.required).finish_non_exhaustive()
    }
}

/// A [`ResourceSource`] of any type.
pub(crate) trait AnySource: Send + Sync {
    fn list(&self, cx: Cx, page: PageRequest) -> SourceFuture<'_, ResourcePage>;
    fn describe(&self, uri: &str) -> Option<Resource>;
    fn find<'a>(&'a self, cx: &'a Cx) -> SourceFuture<'a, Option<Resource>>;
    fn read(self: Arc<Self>, cx: Cx, uri: String) -> HandlerFuture;
}

type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RequestError>> + Send + 'a>>;

impl<S: ResourceSource> AnySource for S {
    fn list(&self, cx: Cx, page: PageRequest) -> SourceFuture<'_, ResourcePage> {
        Box::pin(ResourceSource::list(self, cx, page))
    }

    fn describe(&self, uri: &str) -> Option<Resource> {
        ResourceSource::describe(self, uri)
    }

    fn find<'a>(&'a self, cx: &'a Cx) -> SourceFuture<'a, Option<Resource>> {
        Box::pin(ResourceSource::find(self, cx.clone(), cx.uri()))
    }

    fn read(self: Arc<Self>, cx: Cx, uri: String) -> HandlerFuture {
        Box::pin(async move {
            let read = ResourceSource::read(&*self, cx.clone(), uri).await;
            resource::finish(&cx, read)
        })
    }
}

/// Reads a resource of a source, if it exists and the caller sees it. If the call has a `requestState`, it is claimed before the
/// resource is read.
pub(crate) fn read(cx: Cx, SourceRoute { source, required }: SourceRoute) -> HandlerFuture {
    Box::pin(async move {
        let admitted = match source.find(&cx).await {
            Ok(Some(found)) => {
                let used = Used::own(&required, Entry::Resource(&found)).uri(&found.uri);
                admit(&cx, Access::Read, &used).map(|admission| (admission, found.uri.clone()))
            }
            Ok(None) => Err(AccessRefusal::Hidden),
            Err(error) => return error.outcome(cx.method(), Some(cx.uri())),
        };
        let (admission, listed) = match admitted {
            Ok(admitted) => admitted,
            Err(refused) => {
                return refused.or_unknown(|| Outcome::NotFound { uri: cx.uri().to_owned() });
            }
        };
        let reading = admission.run(&cx, move |cx| match cx.call().returned() {
            true => run_claimed(&cx, move |cx| source.read(cx, listed)),
            false => source.read(cx, listed),
        });
        reading.await
    })
}

/// A position in the pages of several sources or providers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PagePosition {
    /// The number of the source.
    pub(crate) source: usize,
    /// The cursor of the source's page; `None` for its first.
    pub(crate) cursor: Option<String>,
    /// The number of entries of that page that were listed.
    pub(crate) behind: usize,
    /// The name or URI of the last of them.
    pub(crate) key: String,
    /// The number of pages of the source that were listed before.
    pub(crate) pages: usize,
    /// The number of bytes of their entries.
    pub(crate) bytes: usize,
}

impl PagePosition {
    /// Opens a cursor of the caller.
    pub(crate) fn read(cx: &Cx, kind: u8, cursor: &str) -> Option<Self> {
        Self::decode(kind, &cx.open_cursor(cursor)?)
    }

    /// Returns a cursor for the caller.
    pub(crate) fn print(&self, cx: &Cx, kind: u8) -> String {
        cx.seal_cursor(&self.encode(kind))
    }

    /// Reads the kind of cursor, the numbers of a source, of its listed entries, of its pages before and of their bytes, the length of the
    /// source's cursor plus one or 0 for none, the cursor, and the key.
    pub(crate) fn decode(kind: u8, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(&[kind])?;
        let number = |bytes: &[u8; 4]| usize::try_from(u32::from_be_bytes(*bytes)).ok();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let (source, rest) = bytes.split_first_chunk::<4>()?;
        let (behind, rest) = rest.split_first_chunk::<4>()?;
        let (pages, rest) = rest.split_first_chunk::<4>()?;
        let (listed, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (cursor, key) = match number(length)?.checked_sub(1) {
            None => (None, rest),
            Some(length) => {
                let (cursor, key) = rest.split_at_checked(length)?;
                (Some(text(cursor)?), key)
            }
        };
        let (pages, bytes) = (number(pages)?, number(listed)?);
        Some(Self { source: number(source)?, cursor, behind: number(behind)?, key: text(key)?, pages, bytes })
    }

    fn encode(&self, kind: u8) -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
        let cursor = self.cursor.as_deref();
        let length = cursor.map_or(0, |cursor| cursor.len() + 1);
        [
            &[kind],
            &number(self.source)[..],
            &number(self.behind),
            &number(self.pages),
            &number(self.bytes),
            &number(length),
            cursor.unwrap_or_default().as_bytes(),
            self.key.as_bytes(),
        ]
        .concat()
    }

    /// Returns the index to continue at in a page that may have changed: after the last entry, or where it was.
    pub(crate) fn continue_at<K: AsRef<str>>(&self, entries: usize, key: impl Fn(usize) -> K) -> usize {
        let Some(last) = self.behind.checked_sub(1) else { return 0 };
        let is_last = |at: &usize| key(*at).as_ref() == self.key;
        if last < entries && is_last(&last) {
            return self.behind;
        }
        (0..entries).find(is_last).map_or(last, |at| at + 1)
    }
}
