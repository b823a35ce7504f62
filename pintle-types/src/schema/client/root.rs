use crate::common::object;

object! {
    /// A location on the client's side in which a server may work.
    #[derive(Debug, Default)]
    Root {
        /// The URI, of scheme `file:`.
        uri: String,
        /// The name to display.
        name?: String,
        ..meta
    }
    /// Creates a root without a name.
    new(uri: impl Into<String>)
}

object! {
    /// All roots of a client.
    #[derive(Debug, Default)]
    ListRootsResult {
        /// The roots.
        roots: Vec<Root>,
        ..meta
    }
    /// Creates a result with these roots.
    new(roots: Vec<Root>)
}
