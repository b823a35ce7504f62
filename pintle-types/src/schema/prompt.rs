use std::collections::BTreeMap;

use super::{
    base::{InputResponses, ResultType, list_result, redacted_debug},
    content::ContentBlock,
};
use crate::common::{Icon, Role, object};

object! {
    /// A prompt as listed by a server.
    #[derive(Debug, Default)]
    Prompt {
        /// The name of the prompt.
        name: String,
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The arguments.
        arguments?: Vec<PromptArgument>,
        /// Icons.
        icons?: Vec<Icon>,
        ..meta
    }
    /// Creates a prompt without arguments.
    new(name: impl Into<String>)
}

object! {
    /// An argument of a prompt.
    #[derive(Debug, Default)]
    PromptArgument {
        /// The name for programs.
        name: String,
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// Whether the argument is required. Absent means false.
        required?: bool,
        ..
    }
    /// Creates an optional argument.
    new(name: impl Into<String>)
}

list_result! {
    /// The result of `prompts/list`: one page.
    ListPromptsResult {
        /// The prompts.
        prompts: Prompt
    }
}

object! {
    /// The params of `prompts/get`.
    #[derive(Default)]
    GetPromptParams {
        /// The prompt.
        name: String,
        /// The arguments.
        arguments?: BTreeMap<String, String>,
        /// Responses to the input requests of the previous round.
        input_responses?: InputResponses,
        /// The `requestState` of the previous round, unchanged.
        request_state?: String,
        ..meta
    }
    /// Creates params without arguments.
    new(name: impl Into<String>)
}

redacted_debug!(GetPromptParams { name, arguments, meta, extra; input_responses, request_state });

object! {
    /// The result of `prompts/get`: a prompt with its arguments filled in.
    #[derive(Debug, Default)]
    GetPromptResult {
        /// The description.
        description?: String,
        /// The messages.
        messages: Vec<PromptMessage>,
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
    /// The messages.
    new(messages: Vec<PromptMessage>)
}

object! {
    /// One message of a prompt.
    #[derive(Debug)]
    PromptMessage {
        /// The role of the speaker.
        role: Role,
        /// The content.
        content: ContentBlock,
        ..
    }
    /// Creates a message.
    new(role: Role, content: ContentBlock)
}

impl PromptMessage {
    /// Creates a message of the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content.into())
    }

    /// Creates a message of the assistant.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content.into())
    }
}
