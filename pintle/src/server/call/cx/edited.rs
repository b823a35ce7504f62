use std::sync::Arc;

use http::Extensions;
use pintle_types::RawObject;

use super::{Cx, Routed};

/// The changes that layers have made to a call, for the layers further in and for the handler.
#[derive(Default)]
pub(super) struct Edited {
    params: Option<RawObject>,
    extensions: Option<Extensions>,
    pub(super) routed: Routed,
}

impl Cx {
    /// Adds an extension to the call, for the layers further in and for the handler, which takes it as
    /// [`Extension<T>`](crate::server::Extension).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle::{Server, server::{Cx, Extension, Next, Outcome, around, tool}};
    ///
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// async fn tenant(cx: Cx, next: Next) -> Outcome {
    ///     let name = cx.principal().unwrap_or("guest").to_owned();
    ///     next.run(cx.with(Tenant(name))).await
    /// }
    ///
    /// let server = Server::new("notes", "1.0.0")
    ///     .tool(tool("whose", |Extension(Tenant(name)): Extension<Tenant>| async move { name }))
    ///     .layer(&around(tenant));
    /// # #[cfg(feature = "client")] {
    /// let notes = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
    /// assert_eq!(notes.call_tool("whose", ()).await?.text(), "guest");
    /// # }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(self, value: T) -> Self {
        let mut extensions = self.extensions().clone();
        extensions.insert(value);
        let params = self.edited_params().cloned();
        self.edit(Edited { params, extensions: Some(extensions), routed: Routed::default() })
    }

    /// Replaces the parameters of the call, for the layers further in and for the handler.
    ///
    /// The answers and the `requestState` of a call that asked before are those that the client sent.
    #[must_use]
    pub fn with_params(self, params: RawObject) -> Self {
        let extensions = self.edited_extensions().cloned();
        self.edit(Edited { params: Some(params), extensions, routed: Routed::default() })
    }

    fn edit(self, edited: Edited) -> Self {
        Self(self.0, Some(Arc::new(edited)))
    }

    #[inline]
    pub(super) fn edited_params(&self) -> Option<&RawObject> {
        self.1.as_ref()?.params.as_ref()
    }

    /// Returns whether a layer has replaced the parameters.
    pub(crate) fn has_edited_params(&self) -> bool {
        self.edited_params().is_some()
    }

    #[inline]
    pub(super) fn edited_extensions(&self) -> Option<&Extensions> {
        self.1.as_ref()?.extensions.as_ref()
    }
}
