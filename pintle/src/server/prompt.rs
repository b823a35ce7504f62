use std::{collections::BTreeMap, fmt, future::Future, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::{
    Meta, RpcError,
    schema::{
        ContentBlock, GetPromptParams, GetPromptResult, Icon, Prompt, PromptArgument, PromptMessage, Role,
        TextContent,
    },
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{
    Cx, Form, Next, RequestError,
    completion::{Completers, IntoValues},
    size,
};

/// A prompt and the function behind it, not yet part of a server.
///
/// ```
/// use pintle::server::prompt;
///
/// let summary = prompt("summarize", |_cx, arguments| async move {
///     let text = arguments.get("text").cloned().unwrap_or_default();
///     Ok(format!("Summarize this in one line:\n\n{text}"))
/// })
/// .description("Summarize a text.")
/// .argument("text", "What to summarize.");
/// ```
#[derive(Clone)]
pub struct PromptRoute {
    pub(crate) prompt: Prompt,
    pub(crate) next: Next,
    pub(crate) completers: Completers,
    /// The values that some arguments may have.
    pub(crate) allowed: BTreeMap<String, Vec<String>>,
    pub(crate) faults: Vec<String>,
}

/// What was filled in: argument names and their texts.
pub type PromptArguments = BTreeMap<String, String>;

/// Makes a prompt of an async function. Required arguments are checked before it runs.
pub fn prompt<F, Fut, R>(name: impl Into<String>, handler: F) -> PromptRoute
where
    F: Fn(Cx, PromptArguments) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RequestError>> + Send + 'static,
    R: IntoPromptResult,
{
    let handler = Arc::new(handler);
    let next = Next::new(move |cx: Cx| {
        let (handler, arguments) = (handler.clone(), arguments(&cx));
        Box::pin(async move {
            let result = match arguments {
                Ok(arguments) => {
                    handler(cx.clone(), arguments).await.map(IntoPromptResult::into_prompt_result)
                }
                Err(error) => Err(RequestError::protocol(error)),
            };
            match result.map(|result| size::print(&cx, &result)) {
                Ok(Ok(result)) => Outcome::Complete(result.into()),
                Ok(Err(error)) => Outcome::Failed(RpcError::internal(error.to_string())),
                Err(error) => error.outcome(None),
            }
        })
    });
    PromptRoute {
        prompt: Prompt::new(name),
        next,
        completers: Completers::default(),
        allowed: BTreeMap::new(),
        faults: Vec::new(),
    }
}

fn arguments(cx: &Cx) -> Result<PromptArguments, RpcError> {
    let params: GetPromptParams =
        cx.params().decode().map_err(|error| RpcError::invalid_params(format!("`prompts/get`: {error}")))?;
    let arguments: PromptArguments = params.arguments.unwrap_or_default();
    let known = cx.state().catalogue.prompts.get(&params.name);
    let declared = known.into_iter().flat_map(|route| route.prompt.arguments.iter().flatten());
    let missing = declared
        .filter(|argument| argument.required == Some(true) && !arguments.contains_key(&argument.name))
        .map(|argument| format!("`{}`", argument.name));
    let missing: Vec<_> = missing.collect();
    let other = known.into_iter().flat_map(|route| &route.allowed).find_map(|(name, allowed)| {
        arguments.get(name).filter(|value| !allowed.contains(value)).map(|value| (name, value, allowed))
    });
    if let Some((name, value, allowed)) = other {
        let shown: String = value.chars().take(80).collect();
        let allowed = allowed.join("`, `");
        return Err(RpcError::invalid_params(format!(
            "`{name}` is `{shown}` and should be one of `{allowed}`"
        )));
    }
    if missing.is_empty() {
        return Ok(arguments);
    }
    Err(RpcError::invalid_params(format!("the prompt `{}` needs {}", params.name, missing.join(" and "))))
}

impl PromptRoute {
    /// What a person sees instead of the name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.prompt.title = Some(text.into());
        self
    }

    /// What it is for.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.prompt.description = Some(text.into());
        self
    }

    /// Something that must be filled in.
    #[must_use]
    pub fn argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.add_argument(name.into(), description.into(), true)
    }

    /// Something that may be filled in.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.add_argument(name.into(), description.into(), false)
    }

    fn add_argument(mut self, name: String, description: String, required: bool) -> Self {
        let mut argument = PromptArgument::new(name);
        argument.description = Some(description);
        argument.required = Some(required);
        self.prompt.arguments.get_or_insert_default().push(argument);
        self
    }

    /// Checks when the server starts that a `T` can be asked for with [`elicit`](super::Cx::elicit).
    #[must_use]
    pub fn asks<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        if let Err(error) = Form::of::<T>() {
            self.faults.push(format!("the prompt `{}` asks for what it cannot: {error}", self.prompt.name));
        }
        self
    }

    /// A picture of it.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.prompt.icons.get_or_insert_default().push(icon);
        self
    }

    /// Anything else that clients may want to know.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.prompt.meta = Some(meta);
        self
    }

    /// The only values that an argument may have. They complete it too.
    #[must_use]
    pub fn argument_values<T: Into<String>>(
        mut self,
        argument: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let (argument, values) = (argument.into(), values.into_iter().map(Into::into).collect::<Vec<_>>());
        self.completers.add_values(argument.clone(), values.clone());
        self.allowed.insert(argument, values);
        self
    }

    /// Completes the values of one argument.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, completer: F) -> Self
    where
        F: Fn(super::Partial) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoValues> + Send + 'static,
    {
        self.completers.add(argument.into(), completer);
        self
    }
}

/// What a prompt handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return a `String` or `&str` (one user message), a `Vec<PromptMessage>` or a `GetPromptResult`"
)]
pub trait IntoPromptResult {
    /// Makes the result.
    fn into_prompt_result(self) -> GetPromptResult;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> GetPromptResult {
        self
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> GetPromptResult {
        GetPromptResult::new(self)
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> GetPromptResult {
        let text = ContentBlock::Text(TextContent::new(self));
        GetPromptResult::new(vec![PromptMessage::new(Role::User, text)])
    }
}

impl IntoPromptResult for &str {
    fn into_prompt_result(self) -> GetPromptResult {
        self.to_owned().into_prompt_result()
    }
}

impl fmt::Debug for PromptRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptRoute").field("prompt", &self.prompt).finish_non_exhaustive()
    }
}
