use crate::Revision;

/// The use of HTTP by a revision: mirrored headers, and how event streams begin, break and end.
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
    /// Whether a broken stream can be resumed by a GET with `Last-Event-ID`.
    pub resumable: bool,
    /// Whether a stream begins with an event that has an id and no data, and the server may close it after a `retry`,
    /// so that the client reconnects. Clients of other revisions may try to parse the empty data.
    pub polled: bool,
    /// Whether closing the stream of a request cancels it. Otherwise a notification does.
    pub hanging_up_cancels: bool,
    /// Whether headers mirror the body, including annotated arguments of tools.
    pub mirrored: bool,
}

impl Streams {
    /// Returns the use of HTTP by `revision`.
    pub fn of(revision: Revision) -> Self {
        Self {
            resumable: !revision.is_stateless() && !revision.dialect().two_endpoints,
            polled: revision.dialect().polling,
            hanging_up_cancels: revision.dialect().hanging_up_cancels,
            mirrored: revision.dialect().mirrored,
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
        let cancelled: Vec<_> =
            Revision::all().map(|revision| Streams::of(revision).hanging_up_cancels).collect();
        assert_eq!(cancelled, [true, false, false, false, false]);
        let mirrored: Vec<_> = Revision::all().map(|revision| Streams::of(revision).mirrored).collect();
        assert_eq!(mirrored, [true, false, false, false, false]);
    }
}
