use http::HeaderMap;
use pintle_proto::Revision;
use pintle_types::Message;

/// What is known of a message that is sent, for transports that say some of it outside of the message.
#[non_exhaustive]
#[derive(Debug)]
pub struct About<'a> {
    /// What it says: one message, or several that were put into one array.
    pub messages: &'a [Message],
    /// The revision that it is written in, as soon as that is known.
    pub revision: Option<Revision>,
    /// Headers that go with it where there are any: they repeat some of its arguments.
    pub headers: HeaderMap,
}

impl<'a> About<'a> {
    /// This is what it says.
    pub fn new(messages: &'a [Message], revision: Option<Revision>) -> Self {
        Self { messages, revision, headers: HeaderMap::new() }
    }
}
