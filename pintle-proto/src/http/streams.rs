use crate::Revision;

/// How a revision uses HTTP: what is repeated in headers, and how its event streams begin, break and end.
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
    /// Whoever hangs up on a request has cancelled it; where not, a notification has to say so.
    pub hanging_up_cancels: bool,
    /// Requests repeat in headers what is in their bodies, the annotated arguments of tools included.
    pub mirrored: bool,
}

impl Streams {
    /// Those of `revision`.
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
