use pintle_types::{
    JsonObject, method,
    schema::{
        ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
        ElicitationCapability, EmptyParams, IncludeContext, InputRequest, ListRootsResult, RootsCapability,
        SamplingCapability,
    },
};
use serde::{Deserialize, Serialize};

use crate::Peer;

/// A question from a server to its client, or to the client's user.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Asks the user to fill in a form or open a URL.
    Elicit(Box<ElicitParams>),
    /// Asks the client's model to generate a message.
    Sample(Box<CreateMessageParams>),
    /// Asks the client for its root directories.
    Roots,
}

/// The kind of a question, which determines how its answer is read.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Kind {
    /// [`Question::Elicit`].
    #[serde(rename = "e")]
    Elicit,
    /// [`Question::Sample`].
    #[serde(rename = "s")]
    Sample,
    /// [`Question::Roots`].
    #[serde(rename = "r")]
    Roots,
}

/// The answer to a [`Question`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The user's reaction.
    Elicit(ElicitResult),
    /// The model's message.
    Sample(Box<CreateMessageResult>),
    /// The client's roots.
    Roots(ListRootsResult),
}

impl Question {
    /// Returns the kind of the question.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Elicit(_) => Kind::Elicit,
            Self::Sample(_) => Kind::Sample,
            Self::Roots => Kind::Roots,
        }
    }

    /// Returns the question in canonical shapes.
    pub(super) fn request(&self) -> Result<InputRequest, serde_json::Error> {
        let method = self.kind().method();
        match self {
            Self::Elicit(params) => InputRequest::new(method, params),
            Self::Sample(params) => InputRequest::new(method, params),
            Self::Roots => InputRequest::new(method, &EmptyParams::default()),
        }
    }

    /// Returns whether a client that declared `capabilities` can answer the question. A bare `elicitation` means forms.
    pub(crate) fn fits(&self, peer: &Peer) -> bool {
        let capabilities = &peer.capabilities;
        match self {
            Self::Roots => capabilities.roots.is_some(),
            Self::Sample(params) => capabilities.sampling.as_ref().is_some_and(|sampling| {
                (sampling.tools.is_some() || (params.tools.is_none() && params.tool_choice.is_none()))
                    && (sampling.context.is_some()
                        || !peer.revision.dialect().sampling_context
                        || !wants_context(params))
            }),
            Self::Elicit(params) => capabilities.elicitation.as_ref().is_some_and(|modes| match &**params {
                ElicitParams::Url(_) => modes.url.is_some(),
                _ => modes.form.is_some() || modes.url.is_none(),
            }),
        }
    }

    /// Returns the capabilities that the question requires.
    pub(crate) fn required(&self) -> ClientCapabilities {
        let mut required = ClientCapabilities::default();
        match self {
            Self::Roots => required.roots = Some(RootsCapability::default()),
            Self::Sample(params) => {
                let mut sampling = SamplingCapability::default();
                if params.tools.is_some() || params.tool_choice.is_some() {
                    sampling.tools = Some(JsonObject::new());
                }
                sampling.context = wants_context(params).then(JsonObject::new);
                required.sampling = Some(sampling);
            }
            Self::Elicit(params) => {
                let mut elicitation = ElicitationCapability::default();
                if matches!(**params, ElicitParams::Url(_)) {
                    elicitation.url = Some(JsonObject::new());
                }
                required.elicitation = Some(elicitation);
            }
        }
        required
    }
}

/// Returns whether a request needs `sampling.context` in the revisions that have it (SMP-3).
fn wants_context(params: &CreateMessageParams) -> bool {
    params.include_context.as_ref().is_some_and(|context| *context != IncludeContext::None)
}

impl Kind {
    /// Returns the method of the request.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicit => method::ELICITATION_CREATE,
            Self::Sample => method::SAMPLING_CREATE_MESSAGE,
            Self::Roots => method::ROOTS_LIST,
        }
    }

    pub(super) fn read(self, text: &str) -> Result<Answer, serde_json::Error> {
        match self {
            Self::Elicit => serde_json::from_str(text).map(Answer::Elicit),
            Self::Sample => serde_json::from_str(text).map(|result| Answer::Sample(Box::new(result))),
            Self::Roots => serde_json::from_str(text).map(Answer::Roots),
        }
    }
}
