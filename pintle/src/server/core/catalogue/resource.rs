use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use pintle_proto::server::Outcome;
use pintle_types::{
    RpcError,
    schema::{ReadResourceResult, Resource, ResourceContents},
};

use serde::Serialize;

use super::options::{RouteOptions, content_methods, route_methods};
use crate::{
    layer::Handling,
    server::{
        Cx, Description, Handler, HandlerError, Json, Next, RequestError,
        core::handler::{extract::HandlerKind, result_size},
    },
};

/// A resource and its handler, to be added to a server.
///
/// ```
/// use pintle::server::resource;
///
/// let motd = resource("note://motd", "motd", || async { "Be kind." })
///     .mime_type("text/plain")
///     .description("The message of the day.");
/// ```
#[derive(Clone)]
pub struct ResourceRoute {
    pub(crate) resource: Resource,
    pub(crate) options: RouteOptions,
}

/// Creates a resource with a fixed URI from an async function. [`template`](crate::server::template) takes a URI with variables.
pub fn resource<M: 'static, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> ResourceRoute
where
    H: Handler<M, Output: IntoResourceResult>,
{
    ResourceRoute::of(Resource::new(uri, name), handler)
}

impl ResourceRoute {
    /// Creates a resource from its definition: clients see every member of it as it is. A handler that returns an [`Outcome`]
    /// decides the answer as a whole.
    ///
    /// ```
    /// use pintle::{server::ResourceRoute, types::schema::Resource};
    ///
    /// let note: Resource = serde_json::from_str(r#"{"uri": "note://1", "name": "one", "size": 3}"#)?;
    /// let note = ResourceRoute::of(note, || async { "One" });
    /// # assert_eq!(note.definition().size, Some(3));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of<M: 'static, H>(resource: Resource, handler: H) -> Self
    where
        H: Handler<M, Output: IntoResourceResult>,
    {
        let mut description = Description::new(HandlerKind::Resource, &resource.uri);
        H::describe(&mut description);
        let Description { faults, needs, .. } = description;
        Self { resource, options: RouteOptions::new(reader(handler), faults, needs) }
    }

    /// Records a fault if the URI is none, or if the name is empty.
    fn prepare(&mut self) {
        let Resource { uri, name, .. } = &self.resource;
        if uri.contains(['{', '}']) {
            self.options.faults.push(format!("`{uri}` has variables: register it with `template`"));
        } else if !is_uri(uri) {
            self.options
                .faults
                .push(format!("`{uri}` is not a URI: start with a scheme, as in `notes://{uri}`"));
        }
        if name.trim().is_empty() {
            self.options.faults.push(format!("the name of the resource `{uri}` is empty: give it one"));
        }
    }
}

/// Returns whether a text has a scheme, a colon and at least one more character, and no spaces.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(fits)
        && !rest.is_empty()
        && !rest.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

/// Wraps a handler so that it returns the outcome of a read.
pub(crate) fn reader<M: 'static, H: Handler<M, Output: IntoResourceResult>>(handler: H) -> Next {
    let handler = Arc::new(handler);
    Next::new(move |cx: Cx| {
        let running = handler.call(cx.clone());
        Handling::new(async move {
            match running.await {
                Ok(result) => {
                    let read = result.into_resource_result(cx.uri(), declared(&cx));
                    finish(&cx, read)
                }
                Err(outcome) => outcome,
            }
        })
    })
}

/// Returns the MIME type that the resource or its template declares.
fn declared(cx: &Cx) -> Option<&str> {
    match cx.texts() {
        Some(texts) => texts.mime_type(),
        _ => cx.snapshot().catalogue.resources.get(cx.uri())?.resource.mime_type.as_deref(),
    }
}

/// Serializes the contents that were read.
pub(crate) fn finish(cx: &Cx, read: Result<ReadResourceResult, RequestError>) -> Outcome {
    match read.map(|result| result_size::check(cx, result.to_raw())) {
        Ok(Ok(result)) => Outcome::Complete(result.into()),
        Ok(Err(error)) => Outcome::Failed(RpcError::internal(error.to_string())),
        Err(error) => error.outcome(cx.method(), Some(cx.uri())),
    }
}

route_methods!(
    ResourceRoute, Resource, resource.uri: Resource, Resources, resources, prepare: ResourceRoute::prepare
);
content_methods!(ResourceRoute, resource);

/// A type that a resource handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a resource holds",
    note = "return a `String` or `&str` (text), a `Vec<u8>` or `Bytes` (binary), a `Json<T>`, `ResourceContents`, a `Vec` of them, a `ReadResourceResult`, or an `Option` or `Result` of one of them"
)]
pub trait IntoResourceResult {
    /// Converts the value into the result, or into an error. `uri` is the requested URI, `mime` the type that the resource
    /// declares.
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError>;
}

impl IntoResourceResult for ReadResourceResult {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        Ok(self)
    }
}

/// An outcome is the answer as it is. For handlers that pass on the result of another server.
impl IntoResourceResult for Outcome {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        Err(RequestError::other(self))
    }
}

impl IntoResourceResult for Vec<ResourceContents> {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        Ok(ReadResourceResult::new(self))
    }
}

impl IntoResourceResult for ResourceContents {
    fn into_resource_result(
        mut self,
        _: &str,
        mime: Option<&str>,
    ) -> Result<ReadResourceResult, RequestError> {
        self.mime_type = self.mime_type.or_else(|| mime.map(str::to_owned));
        Ok(ReadResourceResult::new(vec![self]))
    }
}

impl IntoResourceResult for String {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        ResourceContents::text(uri, self).into_resource_result(uri, mime)
    }
}

impl IntoResourceResult for &str {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        self.to_owned().into_resource_result(uri, mime)
    }
}

impl IntoResourceResult for &[u8] {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        ResourceContents::blob(uri, STANDARD.encode(self)).into_resource_result(uri, mime)
    }
}

impl IntoResourceResult for Vec<u8> {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        self.as_slice().into_resource_result(uri, mime)
    }
}

impl IntoResourceResult for Bytes {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        self.as_ref().into_resource_result(uri, mime)
    }
}

/// The value as JSON, of the type `application/json` if the resource declares no other.
impl<T: Serialize> IntoResourceResult for Json<T> {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        let text = serde_json::to_string(&self.0)?;
        text.into_resource_result(uri, mime.or(Some("application/json")))
    }
}

/// `None`: there is no such resource.
impl<T: IntoResourceResult> IntoResourceResult for Option<T> {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        self.ok_or_else(RequestError::not_found)?.into_resource_result(uri, mime)
    }
}

impl<T: IntoResourceResult, E: HandlerError<RequestError>> IntoResourceResult for Result<T, E> {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> Result<ReadResourceResult, RequestError> {
        self.map_err(Into::into)?.into_resource_result(uri, mime)
    }
}
