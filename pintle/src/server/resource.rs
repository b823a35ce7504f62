use std::{fmt, future::Future, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pintle_proto::server::{CacheHint, Outcome};
use pintle_types::{
    Meta, RpcError,
    schema::{Annotations, Icon, ReadResourceResult, Resource, ResourceContents},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Cx, Form, Next, RequestError, size};

/// A resource and the function that reads it, not yet part of a server.
///
/// ```
/// use pintle::server::resource;
///
/// let motd = resource("note://motd", "motd", |_cx| async { Ok("Be kind.") })
///     .mime_type("text/plain")
///     .description("The message of the day.");
/// ```
#[derive(Clone)]
pub struct ResourceRoute {
    pub(crate) resource: Resource,
    pub(crate) next: Next,
    pub(crate) faults: Vec<String>,
}

/// Makes a resource of an async function.
pub fn resource<F, Fut, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> ResourceRoute
where
    F: Fn(Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RequestError>> + Send + 'static,
    R: IntoResourceResult,
{
    ResourceRoute {
        resource: Resource::new(uri, name),
        next: reader(None, move |cx, _| handler(cx)),
        faults: Vec::new(),
    }
}

/// The way from a call to what is read. What a template declares holds for all of its `family`.
pub(crate) fn reader<F, Fut, R>(family: Option<String>, handler: F) -> Next
where
    F: Fn(Cx, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RequestError>> + Send + 'static,
    R: IntoResourceResult,
{
    let (handler, family) = (Arc::new(handler), Arc::new(family));
    Next::new(move |cx: Cx| {
        let (handler, family) = (handler.clone(), family.clone());
        let uri = cx.params().decode_member::<String>("uri").ok().flatten().unwrap_or_default();
        Box::pin(async move {
            let catalogue = &cx.state().catalogue;
            let mime = match &*family {
                Some(family) => catalogue.templates.get(family).map(|route| &route.described.mime_type),
                None => catalogue.resources.get(&uri).map(|route| &route.resource.mime_type),
            };
            let mime = mime.and_then(Clone::clone);
            let result = match handler(cx.clone(), uri.clone()).await {
                Ok(result) => result.into_resource_result(&uri, mime.as_deref()),
                Err(error) => return error.outcome(Some(&uri)),
            };
            match size::print(&cx, &result) {
                Ok(result) => Outcome::Complete(result.into()),
                Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
            }
        })
    })
}

impl ResourceRoute {
    /// What a person sees instead of the name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.resource.title = Some(text.into());
        self
    }

    /// What it is.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.resource.description = Some(text.into());
        self
    }

    /// Of what type its contents are.
    #[must_use]
    pub fn mime_type(mut self, mime: impl Into<String>) -> Self {
        self.resource.mime_type = Some(mime.into());
        self
    }

    /// For whom it is, and how much it matters.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.resource.annotations = Some(annotations);
        self
    }

    /// Checks when the server starts that a `T` can be asked for with [`elicit`](super::Cx::elicit).
    #[must_use]
    pub fn asks<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        if let Err(error) = Form::of::<T>() {
            self.faults
                .push(format!("the resource `{}` asks for what it cannot: {error}", self.resource.uri));
        }
        self
    }

    /// A picture of it.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.resource.icons.get_or_insert_default().push(icon);
        self
    }

    /// Anything else that clients may want to know.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.resource.meta = Some(meta);
        self
    }

    /// How long what was read may be kept, and by whom.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.next = self.next.kept(hint);
        self
    }
}

/// What a resource handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a resource holds",
    note = "return a `String` or `&str` (text), a `Vec<u8>` (binary), `ResourceContents`, a `Vec` of them, or a `ReadResourceResult`"
)]
pub trait IntoResourceResult {
    /// Makes the result. `uri` is what was asked for; `mime` what the resource declared.
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> ReadResourceResult;
}

impl IntoResourceResult for ReadResourceResult {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> ReadResourceResult {
        self
    }
}

impl IntoResourceResult for Vec<ResourceContents> {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> ReadResourceResult {
        ReadResourceResult::new(self)
    }
}

impl IntoResourceResult for ResourceContents {
    fn into_resource_result(mut self, _: &str, mime: Option<&str>) -> ReadResourceResult {
        self.mime_type = self.mime_type.or_else(|| mime.map(str::to_owned));
        ReadResourceResult::new(vec![self])
    }
}

impl IntoResourceResult for String {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> ReadResourceResult {
        ResourceContents::text(uri, self).into_resource_result(uri, mime)
    }
}

impl IntoResourceResult for &str {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> ReadResourceResult {
        self.to_owned().into_resource_result(uri, mime)
    }
}

impl IntoResourceResult for Vec<u8> {
    fn into_resource_result(self, uri: &str, mime: Option<&str>) -> ReadResourceResult {
        ResourceContents::blob(uri, STANDARD.encode(self)).into_resource_result(uri, mime)
    }
}

impl fmt::Debug for ResourceRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceRoute").field("resource", &self.resource).finish_non_exhaustive()
    }
}
