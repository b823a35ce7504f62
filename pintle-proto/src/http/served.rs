use super::Endpoint;
use crate::Revision;

/// The revisions that an endpoint serves, grouped by what they mean over HTTP.
///
/// ```
/// use pintle_proto::{Revision, http::Served};
///
/// let served = Served::new(Revision::all());
/// let mut endpoint = served.endpoint();
/// endpoint.body_limit = 1 << 20;
/// assert!(endpoint.sessions);
/// ```
#[derive(Clone, Debug)]
pub struct Served {
    stateless: Vec<&'static str>,
    session: Vec<&'static str>,
    advertised: Vec<&'static str>,
    batching: Vec<&'static str>,
    assumed: Option<&'static str>,
}

impl Served {
    /// Groups these revisions. One with two endpoints is not served on a shared endpoint.
    pub fn new(revisions: impl IntoIterator<Item = Revision>) -> Self {
        let revisions: Vec<_> = revisions.into_iter().collect();
        let names = |fits: &dyn Fn(&Revision) -> bool| -> Vec<&'static str> {
            revisions.iter().filter(|revision| fits(revision)).map(|revision| revision.as_str()).collect()
        };
        let here = |revision: &Revision| !revision.is_stateless() && !revision.dialect().two_endpoints;
        let session = names(&here);
        Self {
            stateless: names(&|revision| revision.is_stateless()),
            advertised: names(&|_| true),
            batching: names(&|revision| here(revision) && revision.dialect().batches),
            // Only a revision without the header can be assumed for a request without one (HTTP-37).
            assumed: names(&|revision| here(revision) && !revision.dialect().version_header).first().copied(),
            session,
        }
    }

    /// Returns an endpoint that serves them.
    pub fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            advertised: &self.advertised,
            batching: &self.batching,
            assumed: self.assumed,
            ..Endpoint::new(&self.stateless, &self.session)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_revision_is_where_it_belongs() {
        let served = Served::new(Revision::all());
        let endpoint = served.endpoint();
        assert_eq!(endpoint.stateless, ["2026-07-28"]);
        assert_eq!(endpoint.session, ["2025-11-25", "2025-06-18", "2025-03-26"]);
        assert_eq!(endpoint.batching, ["2025-03-26"]);
        assert_eq!(endpoint.assumed, Some("2025-03-26"));
        assert_eq!(endpoint.advertised.len(), 5, "as in `server/discover`");

        let modern = Served::new([Revision::LATEST]);
        assert!(!modern.endpoint().sessions);
        assert_eq!(modern.endpoint().assumed, None);

        let newer = Served::new(["2025-11-25", "2025-06-18"].map(|name| name.parse().unwrap()));
        assert_eq!(newer.endpoint().assumed, None, "both would have named themselves");
    }
}
