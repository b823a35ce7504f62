use std::{collections::HashMap, fmt, sync::Arc};

use pintle_proto::{
    Limits, Revision,
    client::{Change, Mode, Profile, Verdict},
};
use pintle_types::{
    JsonObject, Meta, RawObject,
    schema::{
        ClientCapabilities, ElicitationCapability, Implementation, LoggingLevel, LoggingMessageParams,
        ProgressParams, RootsCapability, SamplingCapability,
    },
};

use crate::{
    Error, Result, Timeouts,
    client::{
        asking::{AnswerTasks, Handlers, Report},
        layer::{Next, innermost},
        tools::{OutputCheck, PolicyHook, output},
    },
    message_log::MessageLog,
    transport::PushDemand,
};

/// A synchronous callback.
pub(in crate::client) type Callback<T> = Arc<dyn Fn(Report<T>) + Send + Sync>;

/// A callback for lines that are not messages.
pub(in crate::client) type NoiseCallback = Arc<dyn Fn(Report<&str>) + Send + Sync>;

/// The settings of a client, shared by all its connections.
#[derive(Clone)]
pub(in crate::client) struct ClientSettings {
    pub(in crate::client) info: Implementation,
    pub(in crate::client) handlers: Handlers,
    /// The limits of answers that run as tasks, if servers may ask for them.
    pub(in crate::client) answer_tasks: Option<AnswerTasks>,
    /// The declared capabilities, if they do not follow from the handlers.
    pub(in crate::client) declared: Option<ClientCapabilities>,
    /// From when messages that belong to no request are wanted.
    pub(in crate::client) push_demand: PushDemand,
    /// The layers around every message, and where it takes effect.
    pub(in crate::client) layers: Next,
    pub(in crate::client) policy: Option<PolicyHook>,
    pub(in crate::client) output: Arc<dyn OutputCheck>,
    pub(in crate::client) meta: Option<Meta>,
    pub(in crate::client) message_log: Option<MessageLog>,
    pub(in crate::client) on_log: Option<Callback<LoggingMessageParams>>,
    pub(in crate::client) on_noise: Option<NoiseCallback>,
    pub(in crate::client) on_change: Option<Callback<Change>>,
    pub(in crate::client) on_progress: Option<Callback<ProgressParams>>,
    pub(in crate::client) log_level: Option<LoggingLevel>,
    pub(in crate::client) timeouts: Timeouts,
    pub(in crate::client) limits: Limits,
    pub(in crate::client) mode: Mode,
    pub(in crate::client) revisions: Option<Vec<Revision>>,
    pub(in crate::client) remembered: Option<Verdict>,
    pub(in crate::client) extensions: JsonObject,
    pub(in crate::client) result_types: Vec<Box<str>>,
    /// The handlers of notifications that the protocol does not define, by method.
    pub(in crate::client) notified: HashMap<Box<str>, Callback<RawObject>>,
    /// The members of params that requests repeat in the `Mcp-Name` header, by method.
    pub(in crate::client) names: HashMap<Box<str>, Box<str>>,
    /// Entries and bytes.
    pub(in crate::client) cache: Option<(usize, usize)>,
    pub(in crate::client) reconnects: u32,
    /// How often a request that was lost is sent again.
    pub(in crate::client) retries: u32,
    /// The error of an invalid setting, returned by `connect`.
    pub(in crate::client) fault: Option<String>,
}

impl ClientSettings {
    pub(in crate::client) fn new(info: Implementation) -> Self {
        Self {
            info,
            handlers: Handlers::default(),
            answer_tasks: None,
            declared: None,
            push_demand: PushDemand::always(),
            layers: innermost(),
            policy: None,
            output: output::usual(),
            meta: None,
            message_log: None,
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
            notified: HashMap::new(),
            names: HashMap::new(),
            cache: Some((256, 16 << 20)),
            reconnects: 3,
            retries: 0,
            fault: None,
        }
    }

    /// Returns the profile that the client sends to servers.
    pub(in crate::client) fn profile(&self) -> Result<Profile> {
        if let Some(fault) = &self.fault {
            return Err(Error::misuse(fault));
        }
        let print = |what: Result<RawObject, serde_json::Error>| {
            what.map_err(|error| {
                Error::misuse(format!("the description of the client is not valid JSON: {error}"))
            })
        };
        let info = print(RawObject::from_serialize(&self.info))?;
        let capabilities = print(RawObject::from_serialize(&self.capabilities(&self.handlers)))?;
        let mut profile = Profile::new(info, capabilities);
        profile.result_types = self.result_types.clone();
        profile.methods = self.handlers.custom.keys().cloned().collect();
        profile.any_method = self.handlers.raw.is_some();
        if let Some(revisions) = &self.revisions {
            profile.revisions = revisions.clone();
        }
        Ok(profile)
    }

    /// Derives the capabilities from the handlers.
    pub(in crate::client) fn capabilities(&self, handlers: &Handlers) -> ClientCapabilities {
        if let Some(declared) = &self.declared {
            return declared.clone();
        }
        let Handlers { form, url, sample, sample_tools, sample_context, roots, raw: _, custom: _ } = handlers;
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
            sampling.context = declared(*sample_context);
            can.sampling = Some(sampling);
        }
        if roots.is_some() {
            let mut roots = RootsCapability::new();
            roots.list_changed = Some(true);
            can.roots = Some(roots);
        }
        can.tasks = self.answer_tasks.and_then(|_| AnswerTasks::capability(&can));
        can.extensions = Some(self.extensions.clone()).filter(|extensions| !extensions.is_empty());
        can
    }
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("info", &self.info)
            .field("capabilities", &self.capabilities(&self.handlers))
            .field("mode", &self.mode)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
