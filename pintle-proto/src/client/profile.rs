use pintle_types::RawObject;

use crate::Revision;

/// What a client is and can do: the same for every server that it opens.
///
/// ```
/// use pintle_proto::client::Profile;
///
/// let profile = Profile::new(
///     r#"{"name":"demo","version":"0.1.0"}"#.parse()?,
///     r#"{"elicitation":{"form":{}}}"#.parse()?,
/// );
/// assert!(profile.introduce);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name, version and the like, in canonical form.
    pub info: RawObject,
    /// What the client can do for a server, in canonical form.
    pub capabilities: RawObject,
    /// The revisions that may be spoken. Their order does not matter: newer ones are preferred.
    pub revisions: Vec<Revision>,
    /// Whether to say who is asking where the protocol leaves it open.
    pub introduce: bool,
    /// The result types of the extensions among the capabilities, such as `task`.
    pub result_types: Vec<Box<str>>,
}

impl Profile {
    /// A client that speaks every revision and says who it is.
    pub fn new(info: RawObject, capabilities: RawObject) -> Self {
        Self {
            info,
            capabilities,
            revisions: Revision::all().collect(),
            introduce: true,
            result_types: Vec::new(),
        }
    }

    /// Those of our revisions that have a handshake or have none, newest first.
    pub(super) fn of_era(&self, stateless: bool) -> Vec<Revision> {
        Revision::sorted(&self.revisions).filter(|revision| revision.is_stateless() == stateless).collect()
    }
}
