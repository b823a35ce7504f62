use pintle_types::RawObject;

use crate::Revision;

/// The description of a client, the same for every server that it connects to.
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
    /// The client's name and version, in canonical form.
    pub info: RawObject,
    /// The client's capabilities, in canonical form.
    pub capabilities: RawObject,
    /// The allowed revisions, in any order: newer ones are preferred.
    pub revisions: Vec<Revision>,
    /// Whether stateless requests include the client's name and version, which is optional.
    pub introduce: bool,
    /// The result types of the extensions among the capabilities, such as `task`.
    pub result_types: Vec<Box<str>>,
    /// Methods that the protocol does not define and that the application answers. Servers send them in a session.
    pub methods: Vec<Box<str>>,
    /// Whether the application answers all methods that the protocol does not define.
    pub any_method: bool,
}

impl Profile {
    /// Creates the profile of a client that allows every revision and identifies itself.
    pub fn new(info: RawObject, capabilities: RawObject) -> Self {
        Self {
            info,
            capabilities,
            revisions: Revision::all().collect(),
            introduce: true,
            result_types: Vec::new(),
            methods: Vec::new(),
            any_method: false,
        }
    }

    /// Returns the allowed revisions of one era, newest first.
    pub(super) fn of_era(&self, stateless: bool) -> Vec<Revision> {
        Revision::sorted(&self.revisions).filter(|revision| revision.is_stateless() == stateless).collect()
    }
}
