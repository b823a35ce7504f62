use crate::Revision;

/// How an event stream of a revision begins, breaks and ends.
///
/// ```
/// use pintle_proto::{Revision, http::Streams};
///
/// let streams = Streams::of(Revision::LATEST);
/// assert!(!streams.resumable, "a broken stream is over, and so is the request");
/// assert!(!streams.polled);
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Streams {
    /// A broken stream may be taken up again, with a GET that has `Last-Event-ID`.
    pub resumable: bool,
    /// A stream begins with an event that has an id and no data, and the server may hang up at will after a `retry`:
    /// the client comes back. Clients of other revisions may try to parse the nothing.
    pub polled: bool,
}

impl Streams {
    /// Those of `revision`.
    pub fn of(revision: Revision) -> Self {
        Self {
            resumable: !revision.is_stateless() && !revision.dialect().two_endpoints,
            polled: revision.dialect().polling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_each_revision() {
        // Newest first, as in `all`.
        let resumable: Vec<_> = Revision::all().map(|revision| Streams::of(revision).resumable).collect();
        assert_eq!(resumable, [false, true, true, true, false]);
        let polled: Vec<_> = Revision::all().map(|revision| Streams::of(revision).polled).collect();
        assert_eq!(polled, [false, true, false, false, false]);
    }
}
