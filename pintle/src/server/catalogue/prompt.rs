use std::{collections::BTreeMap, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::{
    JsonObject, RawObject, RpcError,
    schema::{ContentBlock, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role},
};

use pintle_uri::nearest;
use serde_json::Value;

use super::{
    completion::Completers,
    options::{RouteOptions, completion_methods, route_methods},
    texts::Texts,
};
use crate::{
    server::{
        Cx, Description, FromCall, Handler, HandlerError, Next, RequestError,
        call::target::TextTarget,
        handler::{extract::HandlerKind, result_size, vars::missing},
    },
    uri::Vars,
};

/// A prompt and the function behind it, not yet part of a server.
///
/// ```
/// use pintle::server::{Args, prompt};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Summary {
///     /// What to summarize.
///     text: String,
///     /// How many lines it may have.
///     lines: Option<u8>,
/// }
///
/// let summary = prompt("summarize", |Args(Summary { text, lines })| async move {
///     format!("Summarize this in at most {} lines:\n\n{text}", lines.unwrap_or(1))
/// })
/// .description("Summarize a text.");
/// ```
#[derive(Clone)]
pub struct PromptRoute {
    pub(crate) prompt: Prompt,
    pub(crate) options: RouteOptions,
    pub(crate) completers: Completers,
    /// The values that some arguments may have.
    pub(crate) allowed: BTreeMap<String, Vec<String>>,
    /// What the handler takes the arguments for.
    pub(crate) texts: Texts,
}

/// What was filled in: argument names and their texts. Handlers can take it, where [`Args`](crate::server::Args) does not do.
pub type PromptArguments = BTreeMap<String, String>;

/// The arguments of a prompt as text.
impl FromCall for PromptArguments {
    fn describe(description: &mut Description<'_>) {
        description.belongs("PromptArguments", &[HandlerKind::Prompt]);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        let texts = cx.texts().ok_or_else(missing)?;
        Ok(texts.vars().iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect())
    }
}

/// Makes a prompt of an async function. Its arguments are the fields of the function's [`Args`](crate::server::Args); those that
/// are required are checked before it runs.
pub fn prompt<M: 'static, H>(name: impl Into<String>, handler: H) -> PromptRoute
where
    H: Handler<M, Output: IntoPromptResult>,
{
    let handler = Arc::new(handler);
    let next = Next::new(move |cx: Cx| {
        let running = handler.call(cx.clone());
        Box::pin(async move {
            match running.await {
                Ok(result) => finish(&cx, result.into_prompt_result()),
                Err(outcome) => outcome,
            }
        })
    });
    let name = name.into();
    let mut description = Description::new(HandlerKind::Prompt, &name);
    H::describe(&mut description);
    let Description { input, mut faults, needs, .. } = description;
    let texts = Texts::of(HandlerKind::Prompt, &name, input, &mut faults);
    let mut completers = Completers::default();
    texts.complete(&mut completers);
    let mut prompt = Prompt::new(name);
    prompt.arguments = texts.arguments();
    let options = RouteOptions::new(next, faults, needs);
    PromptRoute { prompt, options, completers, allowed: BTreeMap::new(), texts }
}

fn finish(cx: &Cx, result: Result<GetPromptResult, RequestError>) -> Outcome {
    match result.map(|result| result_size::check(cx, RawObject::from_serialize(&result))) {
        Ok(Ok(result)) => Outcome::Complete(result.into()),
        Ok(Err(error)) => Outcome::Failed(RpcError::internal(error.to_string())),
        Err(error) => error.outcome(None),
    }
}

route_methods!(PromptRoute, Prompt, prompt.name, Prompts, prompts);
completion_methods!(PromptRoute, prompt.name, "argument");

impl PromptRoute {
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

    /// What is said of an argument that the handler's type has already goes before what the type says.
    fn add_argument(mut self, name: String, description: String, required: bool) -> Self {
        let arguments = self.prompt.arguments.get_or_insert_default();
        let place = arguments.iter().position(|known| known.name == name).unwrap_or_else(|| {
            arguments.push(PromptArgument::new(name));
            arguments.len() - 1
        });
        arguments[place].description = Some(description);
        arguments[place].required = Some(required);
        self
    }

    /// The arguments of a call, if they are those that the prompt has.
    pub(crate) fn admit(&self, cx: &Cx) -> Result<Vars, RpcError> {
        let mut given = given(cx)?;
        given.retain(|name, text| !self.texts.is_blank(name, text));
        let other = self.allowed.iter().find_map(|(name, allowed)| {
            given.get(name).filter(|value| !allowed.contains(value)).map(|value| (name, value, allowed))
        });
        if let Some((name, value, allowed)) = other {
            let shown: String = value.chars().take(80).collect();
            let near = nearest(value, allowed.iter().map(String::as_str));
            let near = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
            let allowed = allowed.join("`, `");
            return Err(RpcError::invalid_params(format!(
                "`{name}` is `{shown}` and should be one of `{allowed}`{near}"
            )));
        }
        let declared = || self.prompt.arguments.iter().flatten();
        let missing: Vec<_> = declared()
            .filter(|argument| argument.required == Some(true) && !given.contains_key(&argument.name))
            .map(|argument| &*argument.name)
            .collect();
        if missing.is_empty() {
            return Ok(given.into_iter().collect());
        }
        let unknown = given.keys().filter(|name| declared().all(|argument| argument.name != **name));
        let near = unknown.filter_map(|name| Some((name, nearest(name, missing.iter().copied())?))).next();
        let near = near.map(|(name, near)| format!("; `{name}` is not known: did you mean `{near}`?"));
        Err(RpcError::invalid_params(format!(
            "the prompt `{}` needs `{}`{}",
            self.prompt.name,
            missing.join("` and `"),
            near.unwrap_or_default()
        )))
    }

    /// Restricts an argument to these values, which also complete it unless [`complete`](Self::complete) does.
    ///
    /// Two lists for one argument are an error: [`Server::check`](crate::server::Server::check) reports it, and `serve` refuses
    /// to start. Nothing is overwritten.
    #[must_use]
    pub fn argument_values<T: Into<String>>(
        mut self,
        argument: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let (argument, values) = (argument.into(), values.into_iter().map(Into::into).collect::<Vec<_>>());
        if self.allowed.contains_key(&argument) {
            let name = &self.prompt.name;
            self.options.faults.push(format!(
                "the prompt `{name}` has two lists of values for `{argument}`; keep one of them"
            ));
            return self;
        }
        self.completers.add_values(argument.clone(), values.clone());
        self.allowed.insert(argument, values);
        self
    }
}

/// The texts that a call brings.
fn given(cx: &Cx) -> Result<PromptArguments, RpcError> {
    let arguments = cx.params().decode_member::<Option<PromptArguments>>("arguments");
    arguments.map(|arguments| arguments.flatten().unwrap_or_default()).map_err(|error| {
        let members = cx.params().decode_member::<JsonObject>("arguments").ok().flatten();
        let other = members.into_iter().flatten().find(|(_, value)| !value.is_string());
        RpcError::invalid_params(match other {
            Some((name, value @ (Value::Number(_) | Value::Bool(_)))) => {
                format!("argument `{name}` should be a string, but is `{value}`: did you mean `\"{value}\"`?")
            }
            Some((name, _)) => format!("argument `{name}` should be a string: prompts take texts only"),
            None => format!("`arguments` of `prompts/get` should be an object of strings: {error}"),
        })
    })
}

/// What a prompt handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return a `String` or `&str` (one user message), a `PromptMessage`, a `Vec` of them, a `GetPromptResult`, or a `Result` of one of them"
)]
pub trait IntoPromptResult {
    /// Makes the result, or says why there is none.
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        Ok(self)
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        vec![self].into_prompt_result()
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for &str {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        self.to_owned().into_prompt_result()
    }
}

/// What the user shows: an image, a resource.
impl IntoPromptResult for ContentBlock {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        PromptMessage::new(Role::User, self).into_prompt_result()
    }
}

impl<T: IntoPromptResult, E: HandlerError<RequestError>> IntoPromptResult for Result<T, E> {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        self.map_err(Into::into)?.into_prompt_result()
    }
}

impl TextTarget for PromptRoute {
    fn fault(&self, vars: &Vars) -> Option<String> {
        self.texts.fault(vars)
    }

    fn mime_type(&self) -> Option<&str> {
        None
    }
}
