use std::fmt;

use http::Extensions;

/// Who is at the other end of a connection, as far as somebody has checked that.
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
/// Server::new("notes", "1.0.0").serve_to(ours, caller)?;
/// # drop(theirs); Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Caller {
    pub(crate) principal: Option<Box<str>>,
    pub(crate) extensions: Extensions,
}

impl Caller {
    /// Nobody in particular.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls are made on somebody's behalf: states that are sealed for one are good for no other.
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

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("principal", &self.principal).finish_non_exhaustive()
    }
}
