use std::{fmt, sync::Arc};

use pintle_proto::{
    Limits, Revision,
    client::{Change, Mode, Profile, Verdict},
};
use pintle_types::{
    JsonObject, RawObject,
    schema::{
        ClientCapabilities, ElicitationCapability, Implementation, LoggingLevel, LoggingMessageParams,
        ProgressParams, RootsCapability, SamplingCapability,
    },
};

use super::{
    handlers::Handlers,
    output::{self, OutputCheck},
    policy::PolicyHook,
};
use crate::{Error, Result, Timeouts};

/// Is called with something, and does not wait.
pub(super) type Callback<T> = Arc<dyn Fn(T) + Send + Sync>;

/// Is called with a line that is no message.
pub(super) type NoiseCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// What a client was told to be, the same for all its connections.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) info: Implementation,
    pub(super) handlers: Handlers,
    pub(super) policy: Option<PolicyHook>,
    pub(super) output: Arc<dyn OutputCheck>,
    pub(super) on_log: Option<Callback<LoggingMessageParams>>,
    pub(super) on_noise: Option<NoiseCallback>,
    pub(super) on_change: Option<Callback<Change>>,
    pub(super) on_progress: Option<Callback<ProgressParams>>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) timeouts: Timeouts,
    pub(super) limits: Limits,
    pub(super) mode: Mode,
    pub(super) revisions: Option<Vec<Revision>>,
    pub(super) remembered: Option<Verdict>,
    pub(super) extensions: JsonObject,
    pub(super) result_types: Vec<Box<str>>,
    /// Entries and bytes.
    pub(super) cache: Option<(usize, usize)>,
    pub(super) reconnects: u32,
    /// What was wrong with a setting.
    pub(super) fault: Option<String>,
}

impl Settings {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            handlers: Handlers::default(),
            policy: None,
            output: output::usual(),
            on_log: None,
            on_noise: None,
            on_change: None,
            on_progress: None,
            log_level: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            mode: Mode::default(),
            revisions: None,
            remembered: None,
            extensions: JsonObject::new(),
            result_types: Vec::new(),
            cache: Some((256, 16 << 20)),
            reconnects: 3,
            fault: None,
        }
    }

    /// How the client introduces itself.
    pub(super) fn profile(&self) -> Result<Profile> {
        if let Some(fault) = &self.fault {
            return Err(Error::misuse(fault));
        }
        let print = |what: Result<RawObject, serde_json::Error>| {
            what.map_err(|error| Error::misuse(format!("what the client says of itself is no JSON: {error}")))
        };
        let info = print(RawObject::from_serialize(&self.info))?;
        let capabilities = print(RawObject::from_serialize(&self.capabilities()))?;
        let mut profile = Profile::new(info, capabilities);
        profile.result_types = self.result_types.clone();
        if let Some(revisions) = &self.revisions {
            profile.revisions = revisions.clone();
        }
        Ok(profile)
    }

    /// The handlers are the capabilities.
    fn capabilities(&self) -> ClientCapabilities {
        let Handlers { form, url, sample, sample_tools, roots } = &self.handlers;
        let declared = |wanted: bool| wanted.then(JsonObject::new);
        let mut can = ClientCapabilities::new();
        if form.is_some() || url.is_some() {
            let mut elicitation = ElicitationCapability::new();
            elicitation.form = declared(form.is_some());
            elicitation.url = declared(url.is_some());
            can.elicitation = Some(elicitation);
        }
        if sample.is_some() {
            let mut sampling = SamplingCapability::new();
            sampling.tools = declared(*sample_tools);
            can.sampling = Some(sampling);
        }
        if roots.is_some() {
            let mut roots = RootsCapability::new();
            roots.list_changed = Some(true);
            can.roots = Some(roots);
        }
        can.extensions = Some(self.extensions.clone()).filter(|extensions| !extensions.is_empty());
        can
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("info", &self.info)
            .field("capabilities", &self.capabilities())
            .field("mode", &self.mode)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
