use std::{future::Future, pin::Pin, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_proto::server::Outcome;
use pintle_types::{
    RawObject, RpcError,
    schema::{ListResourcesResult, ReadResourceResult, Resource},
};

use super::{lists, resource};
use crate::server::{Cx, Entry, ListKind, RequestError, call::run::HandlerFuture};

/// A source of resources that may change at any time: the files of a directory, the rows of a table.
///
/// [`Directory`](crate::directory::Directory) is one.
///
/// ```
/// use pintle::server::{Cx, RequestError, ResourceSource};
/// use pintle::types::schema::{ReadResourceResult, Resource, ResourceContents};
///
/// struct Squares;
///
/// impl ResourceSource for Squares {
///     async fn list(&self, _cx: Cx) -> Result<Vec<Resource>, RequestError> {
///         Ok((0..10).map(|n| Resource::new(format!("square://{n}"), n.to_string())).collect())
///     }
///
///     fn find(&self, uri: &str) -> Option<Resource> {
///         let number: u8 = uri.strip_prefix("square://")?.parse().ok()?;
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
    /// Returns all resources, always in the same order.
    fn list(&self, cx: Cx) -> impl Future<Output = Result<Vec<Resource>, RequestError>> + Send;

    /// Returns the resource of a URI as [`list`](Self::list) describes it, without I/O; `None` if the URI is not one of this
    /// source. Filters see the result, so a resource must have one `uri` regardless of how the client spelled it.
    fn find(&self, uri: &str) -> Option<Resource>;

    /// Reads a resource that [`find`](Self::find) returned.
    fn read(
        &self,
        cx: Cx,
        uri: String,
    ) -> impl Future<Output = Result<ReadResourceResult, RequestError>> + Send;
}

/// A [`ResourceSource`] of any type.
pub(crate) trait AnySource: Send + Sync {
    fn list(&self, cx: Cx) -> SourceFuture<'_, Vec<Resource>>;
    fn find(&self, uri: &str) -> Option<Resource>;
    fn read(self: Arc<Self>, cx: Cx) -> HandlerFuture;
}

type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RequestError>> + Send + 'a>>;

impl<S: ResourceSource> AnySource for S {
    fn list(&self, cx: Cx) -> SourceFuture<'_, Vec<Resource>> {
        Box::pin(ResourceSource::list(self, cx))
    }

    fn find(&self, uri: &str) -> Option<Resource> {
        ResourceSource::find(self, uri)
    }

    fn read(self: Arc<Self>, cx: Cx) -> HandlerFuture {
        Box::pin(async move {
            let read = ResourceSource::read(&*self, cx.clone(), cx.uri().to_owned()).await;
            resource::finish(&cx, read)
        })
    }
}

/// Answers `resources/list` if there are sources: first the registered resources, then those of each source.
pub(crate) async fn list(cx: Cx) -> Outcome {
    match page(&cx).await {
        Ok(result) => match RawObject::from_serialize(&result) {
            Ok(body) => Outcome::Cacheable(body.into(), lists::hint(&cx, ListKind::Resources)),
            Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
        },
        Err(error) => error.outcome(cx.method(), None),
    }
}

async fn page(cx: &Cx) -> Result<ListResourcesResult, RequestError> {
    let state = cx.snapshot();
    let size = state.settings.page.unwrap_or(usize::MAX).max(1);
    let from = ListPosition::read(cx).map_err(RequestError::protocol)?;
    let mut page = ResourcePage { size, entries: Vec::new(), last: from.clone(), more: false };
    let mut first = 0;
    match &from {
        ListPosition::Registered(position) => {
            for (position, route) in state.catalogue.resources.after(*position) {
                if lists::sees(cx, route) {
                    page.push(ListPosition::Registered(position), || route.resource.clone());
                }
                if page.more {
                    return Ok(page.finish());
                }
            }
        }
        ListPosition::Source { source, .. } => first = *source,
    }
    for (at, source) in state.catalogue.sources.iter().enumerate().skip(first) {
        let resources = source.list(cx.clone()).await?;
        let begin = if at == first { from.behind(&resources) } else { 0 };
        for (behind, resource) in (begin + 1..).zip(resources.into_iter().skip(begin)) {
            if lists::passes_filters(cx, Entry::Resource(&resource)) {
                let position = ListPosition::Source { source: at, behind, uri: resource.uri.clone() };
                page.push(position, || resource);
            }
            if page.more {
                return Ok(page.finish());
            }
        }
    }
    Ok(page.finish())
}

struct ResourcePage {
    size: usize,
    entries: Vec<Resource>,
    last: ListPosition,
    more: bool,
}

impl ResourcePage {
    fn push(&mut self, position: ListPosition, resource: impl FnOnce() -> Resource) {
        if self.entries.len() == self.size {
            self.more = true;
        } else {
            self.entries.push(resource());
            self.last = position;
        }
    }

    fn finish(self) -> ListResourcesResult {
        let mut result = ListResourcesResult::new(self.entries);
        result.next_cursor = self.more.then(|| self.last.print());
        result
    }
}

/// The position at which a page ended.
#[derive(Clone)]
enum ListPosition {
    /// After the registered resource with this number.
    Registered(u64),
    /// After this resource of a source, which was number `behind` of its list.
    Source { source: usize, behind: usize, uri: String },
}

impl ListPosition {
    fn read(cx: &Cx) -> Result<Self, RpcError> {
        let text = lists::cursor_text(cx)?;
        let sourced = text.as_ref().and_then(|text| {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let (source, rest) = bytes.strip_prefix(b"s")?.split_first_chunk::<4>()?;
            let (behind, uri) = rest.split_first_chunk::<4>()?;
            let number = |bytes: &[u8; 4]| usize::try_from(u32::from_be_bytes(*bytes)).ok();
            Some(Self::Source {
                source: number(source)?,
                behind: number(behind)?,
                uri: String::from_utf8(uri.to_vec()).ok()?,
            })
        });
        sourced.map_or_else(|| lists::cursor(cx, b'r').map(Self::Registered), Ok)
    }

    fn print(&self) -> String {
        match self {
            Self::Registered(position) => lists::printed_cursor(b'r', *position),
            Self::Source { source, behind, uri } => {
                let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
                URL_SAFE_NO_PAD
                    .encode([b"s", &number(*source)[..], &number(*behind), uri.as_bytes()].concat())
            }
        }
    }

    /// Returns the index to continue at in a list that may have changed: after the last resource, or where it was.
    fn behind(&self, resources: &[Resource]) -> usize {
        let Self::Source { behind, uri, .. } = self else { return 0 };
        let is_there =
            behind.checked_sub(1).and_then(|at| resources.get(at)).is_some_and(|it| it.uri == *uri);
        if is_there {
            return *behind;
        }
        match resources.iter().position(|resource| resource.uri == *uri) {
            Some(at) => at + 1,
            None => behind.saturating_sub(1),
        }
    }
}
