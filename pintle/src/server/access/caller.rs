use std::fmt;

use http::Extensions;

use crate::server::Authenticated;

/// Who is at the other end of a connection, as far as somebody has checked that.
///
/// Which of the three [principals](crate::server::Principal) it is has to be said: [`new`](Self::new) is an anonymous one, whatever
/// the transport.
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
    /// Nobody in particular: may do nothing that something is [required](crate::server::ToolRoute::requires) for, until an
    /// [`Authenticated`] is added with [`with`](Self::with).
    pub fn new() -> Self {
        Self::default()
    }

    /// The user who runs this process: may do everything. For transports of your own whose other end nobody else can reach.
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

    /// Calls are made on somebody's behalf: states that are sealed for one are good for no other. The name of its
    /// [`Authenticated`] if nothing is said. A name alone gives no rights.
    #[must_use]
    pub fn principal(mut self, name: impl Into<Box<str>>) -> Self {
        self.principal = Some(name.into());
        self
    }

    /// Leaves a value for filters, layers and handlers, where they find it by its type.
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }
}

impl Caller {
    /// The principal's name: as was said, or as whoever authenticated it says.
    pub(crate) fn name(&self) -> Option<&str> {
        let known = || self.extensions.get::<Authenticated>().and_then(Authenticated::principal);
        self.principal.as_deref().or_else(known)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("principal", &self.name()).finish_non_exhaustive()
    }
}
