use std::{ops::Deref, sync::Arc};

/// Something that a server reported, and the connection that it came from. The argument of a client's callbacks.
///
/// The fields of `params` can be used directly.
///
/// ```
/// use pintle::Client;
///
/// let client = Client::new("demo", "0.1.0").on_log(|report| {
///     let connection = report.connection.as_deref().unwrap_or("server");
///     println!("{connection}: {}", report.data);
/// });
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Report<P> {
    /// The name of the connection, if it was opened with [`Client::connect_as`](crate::Client::connect_as).
    pub connection: Option<Arc<str>>,
    /// The content.
    pub params: P,
}

impl<P> Report<P> {
    pub(in crate::client) fn new(connection: Option<Arc<str>>, params: P) -> Self {
        Self { connection, params }
    }
}

impl<P> Deref for Report<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.params
    }
}
