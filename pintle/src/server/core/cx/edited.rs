use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::Extensions;
use pintle_types::RawObject;

use super::{Cx, Mounted, Routed, found_in::FoundIn};
use crate::server::{ServerKey, core::snapshot::Snapshot};

/// The changes that layers and mounts have made to a call, for the layers further in and for the handler.
#[derive(Default)]
pub(super) struct Edited {
    /// The parameters of the client as a mounted server sees them.
    sent: Option<RawObject>,
    params: Option<RawObject>,
    extensions: Option<Extensions>,
    /// The mounted server that handles the call.
    pub(super) mounted: Option<Arc<Mounted>>,
    /// The states of the providers in which the entry was found that the call names.
    found_in: Option<Arc<FoundIn>>,
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
        self.edit(|edited| edited.extensions = Some(extensions))
    }

    /// Replaces the parameters of the call, for the layers further in and for the handler.
    ///
    /// The answers and the `requestState` of a call that asked before are those that the client sent.
    #[must_use]
    pub fn with_params(self, params: RawObject) -> Self {
        self.edit(|edited| edited.params = Some(params))
    }

    /// Rewrites the parameters for a mounted provider: those that the client sent, and those that a layer has put in their place.
    /// Parameters for which `rewrite` returns `None` stay as they are. It is called with the method of the call.
    pub(crate) fn rewritten(self, rewrite: impl Fn(&str, &RawObject) -> Option<RawObject>) -> Self {
        let sent = rewrite(self.method(), self.sent_params());
        let params = self.1.as_ref().and_then(|edited| rewrite(self.method(), edited.params.as_ref()?));
        if sent.is_none() && params.is_none() {
            return self;
        }
        self.edit(|edited| {
            edited.sent = sent.or(edited.sent.take());
            edited.params = params.or(edited.params.take());
        })
    }

    /// Has a mounted server handle the call: its snapshot is that of the call from here on.
    pub(crate) fn mounted(self, mounted: Mounted) -> Self {
        self.edit(|edited| {
            edited.mounted = Some(Arc::new(Mounted { outer: edited.mounted.take(), ..mounted }));
        })
    }

    /// Has a mounted server handle the call, as the provider that the call has come to.
    pub(crate) fn handled_by(self, mounted: Mounted) -> Self {
        // From here on, the providers are those of this server.
        let number = self.0.mounts.provider.swap(0, Ordering::Relaxed).checked_sub(1);
        self.mounted(Mounted { number, ..mounted })
    }

    /// Has the providers of an entry handle the call in the states in which it was found. `None` if a server around this one has found it
    /// in another state, and judged that.
    pub(crate) fn within(self, found: Arc<FoundIn>) -> Option<Self> {
        let is_other = self.found().is_some_and(|judged| found.differs(judged));
        (!is_other).then(|| self.edit(|edited| edited.found_in = Some(found)))
    }

    /// Returns the state in which the provider has found the entry that the call names: see
    /// [`ProvidedEntry::found_in`](crate::server::ProvidedEntry::found_in).
    pub fn found_in<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.found()?.state()
    }

    /// Returns the snapshot of a mounted server in which the entry was found that the call names.
    pub(crate) fn found_snapshot(&self, of: &ServerKey) -> Option<Arc<Snapshot>> {
        self.found()?.snapshot(of).cloned()
    }

    fn found(&self) -> Option<&FoundIn> {
        self.1.as_ref()?.found_in.as_deref()
    }

    /// Returns the call as the server of the connection sees it, with what its layers have made of it.
    pub(crate) fn unmounted(self) -> Self {
        self.edit(|edited| edited.mounted = None)
    }

    fn edit(self, edit: impl FnOnce(&mut Edited)) -> Self {
        let mut edited = match self.1.as_deref() {
            None => Edited::default(),
            Some(Edited { sent, params, extensions, mounted, found_in, routed: _ }) => Edited {
                sent: sent.clone(),
                params: params.clone(),
                extensions: extensions.clone(),
                mounted: mounted.clone(),
                found_in: found_in.clone(),
                routed: Routed::default(),
            },
        };
        edit(&mut edited);
        Self(self.0, Some(Arc::new(edited)))
    }

    #[inline]
    pub(super) fn edited_params(&self) -> Option<&RawObject> {
        let edited = self.1.as_ref()?;
        edited.params.as_ref().or(edited.sent.as_ref())
    }

    /// Returns whether a layer has replaced the parameters.
    pub(crate) fn has_edited_params(&self) -> bool {
        self.1.as_ref().is_some_and(|edited| edited.params.is_some())
    }

    /// Returns the parameters that the client sent, whatever layers have made of them. A mounted server sees its own names in them.
    pub(crate) fn sent_params(&self) -> &RawObject {
        self.1.as_ref().and_then(|edited| edited.sent.as_ref()).unwrap_or_else(|| self.call().params())
    }

    /// Returns whether a mounted server handles the call.
    pub(crate) fn is_mounted(&self) -> bool {
        self.mount().is_some()
    }

    /// Returns the mounted server that handles the call.
    #[inline]
    pub(super) fn mount(&self) -> Option<&Mounted> {
        self.1.as_ref()?.mounted.as_deref()
    }

    /// Returns the timeout of the innermost mounted server that has one.
    pub(crate) fn mount_timeout(&self) -> Option<Option<Duration>> {
        let mounts = std::iter::successors(self.mount(), |mounted| mounted.outer.as_deref());
        mounts.into_iter().find_map(|mounted| mounted.snapshot.settings.calls.timeout)
    }

    #[inline]
    pub(super) fn edited_extensions(&self) -> Option<&Extensions> {
        self.1.as_ref()?.extensions.as_ref()
    }
}
