use std::fmt;

use http::Extensions;

use crate::server::Authenticated;

/// The caller at the other end of a connection, as established by the transport.
///
/// [`new`](Self::new) is an anonymous caller on every transport; use [`local`](Self::local) or
/// [`principal`](Self::principal) for the other kinds of [`Principal`](crate::server::Principal).
///
/// ```
/// use pintle::{Server, server::Caller, transport::memory};
///
/// #[derive(Clone)]
/// struct Address(std::net::IpAddr);
///
/// # async fn run() -> pintle::Result<()> {
/// let (ours, theirs) = memory();
/// let caller = Caller::new().principal("ann").with(Address([127, 0, 0, 1].into()));
/// let serving = Server::new("notes", "1.0.0").serve_to(ours, caller)?;
/// # drop(theirs); Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Caller {
    pub(crate) principal: Option<Box<str>>,
    pub(crate) extensions: Extensions,
}

impl Caller {
    /// Creates an anonymous caller, without any [required](crate::server::ToolRoute::requires) right until an
    /// [`Authenticated`] is added with [`with`](Self::with).
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the local user, who has every right. For custom transports that no other user can connect to.
    ///
    /// ```
    /// use pintle::{Server, server::{Caller, tool}, transport::Stream};
    ///
    /// # async fn run() -> pintle::Result<()> {
    /// let server = Server::new("notes", "1.0.0")
    ///     .tool(tool("clear", || async { "Cleared." }).requires(["notes:write"]));
    /// let (reader, writer) = tokio::io::split(tokio::io::duplex(1024).0);
    /// let serving = server.serve_to(Stream::new(reader, writer), Caller::local())?;
    /// # Ok(()) }
    /// ```
    pub fn local() -> Self {
        Self::new().with(Authenticated::local())
    }

    /// Sets the name of the principal. States sealed for one principal are not valid for another. Default: the name of its
    /// [`Authenticated`]. A name alone gives no rights.
    #[must_use]
    pub fn principal(mut self, name: impl Into<Box<str>>) -> Self {
        self.principal = Some(name.into());
        self
    }

    /// Adds a value that filters, layers and handlers look up by its type.
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }
}

impl Caller {
    /// Returns the name of the principal: the one that was set, or that of its [`Authenticated`].
    pub(crate) fn name(&self) -> Option<&str> {
        let authenticated = || self.extensions.get::<Authenticated>().and_then(Authenticated::principal);
        self.principal.as_deref().or_else(authenticated)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("principal", &self.name()).finish_non_exhaustive()
    }
}
