use std::{collections::BTreeMap, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::{
    JsonObject, RawObject, RpcError, plain_error,
    schema::{ContentBlock, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role},
};

use pintle_uri::nearest;
use serde_json::Value;

use super::{
    completion::Completers,
    options::{RouteOptions, completion_methods, name_methods, route_methods},
    texts::Texts,
};
use crate::{
    layer::Handling,
    server::{
        Cx, Description, FromCall, Handler, HandlerError, Next, RequestError,
        core::handler::{extract::HandlerKind, result_size, vars::missing},
    },
    uri::Vars,
};

/// A prompt and its handler, to be added to a server.
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
    /// The values that arguments are restricted to.
    pub(crate) allowed: BTreeMap<String, Vec<String>>,
    /// The types of the arguments.
    pub(crate) texts: Texts,
}

/// The arguments of a prompt by name, not decoded. A handler takes it instead of [`Args`](crate::server::Args).
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

/// Creates a prompt from an async function. Its arguments are the fields of the function's [`Args`](crate::server::Args); those that
/// are required are checked before it runs.
pub fn prompt<M: 'static, H>(name: impl Into<String>, handler: H) -> PromptRoute
where
    H: Handler<M, Output: IntoPromptResult>,
{
    let mut route = PromptRoute::of(Prompt::new(name), handler);
    route.prompt.arguments = route.texts.arguments();
    route
}

/// Wraps a handler so that it returns the outcome of a get.
fn next<M: 'static, H: Handler<M, Output: IntoPromptResult>>(handler: H) -> Next {
    let handler = Arc::new(handler);
    Next::new(move |cx: Cx| {
        let running = handler.call(cx.clone());
        Handling::new(async move {
            match running.await {
                Ok(result) => finish(&cx, result.into_prompt_result()),
                Err(outcome) => outcome,
            }
        })
    })
}

fn finish(cx: &Cx, result: Result<GetPromptResult, RequestError>) -> Outcome {
    match result.map(|result| result_size::check(cx, RawObject::from_serialize(&result))) {
        Ok(Ok(result)) => Outcome::Complete(result.into()),
        Ok(Err(error)) => Outcome::Failed(RpcError::internal(error.to_string())),
        Err(error) => error.outcome(cx.method(), None),
    }
}

route_methods!(PromptRoute, Prompt, prompt.name: Prompt, Prompts, prompts, prepare: PromptRoute::prepare);
name_methods!(PromptRoute, prompt);
completion_methods!(PromptRoute, prompt.name, "argument");

impl PromptRoute {
    /// Creates a prompt from its definition: clients see every member of it as it is.
    ///
    /// The handler takes the arguments as text ([`PromptArguments`]) or decodes them ([`Args`](crate::server::Args)); its types do
    /// not change the definition. Arguments that the definition requires are checked before it runs. A handler that returns an
    /// [`Outcome`] decides the answer as a whole.
    ///
    /// ```
    /// use pintle::{server::{PromptArguments, PromptRoute}, types::schema::Prompt};
    ///
    /// let greet: Prompt = serde_json::from_str(r#"{"name": "greet", "arguments": [{"name": "who", "required": true}]}"#)?;
    /// let greet = PromptRoute::of(greet, |arguments: PromptArguments| async move { format!("Greet {}.", arguments["who"]) });
    /// # assert!(greet.definition().arguments.is_some());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of<M: 'static, H>(prompt: Prompt, handler: H) -> Self
    where
        H: Handler<M, Output: IntoPromptResult>,
    {
        let mut description = Description::new(HandlerKind::Prompt, &prompt.name);
        H::describe(&mut description);
        let Description { input, mut faults, needs, .. } = description;
        let texts = Texts::of(HandlerKind::Prompt, &prompt.name, input, &mut faults);
        let mut completers = Completers::default();
        texts.complete(&mut completers);
        let options = RouteOptions::new(next(handler), faults, needs);
        Self { prompt, options, completers, allowed: BTreeMap::new(), texts }
    }

    /// Adds a required argument, or changes the argument of this name that the handler's type has.
    #[must_use]
    pub fn argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.add_argument(name.into(), description.into(), true)
    }

    /// Adds an optional argument, or changes the argument of this name that the handler's type has.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.add_argument(name.into(), description.into(), false)
    }

    /// Records a fault if the name is empty.
    fn prepare(&mut self) {
        if self.prompt.name.trim().is_empty() {
            self.options.faults.push("the name of a prompt is empty: give it one".to_owned());
        }
    }

    fn add_argument(mut self, name: String, description: String, required: bool) -> Self {
        let arguments = self.prompt.arguments.get_or_insert_default();
        let index = arguments.iter().position(|known| known.name == name).unwrap_or_else(|| {
            arguments.push(PromptArgument::new(name));
            arguments.len() - 1
        });
        arguments[index].description = Some(description);
        arguments[index].required = Some(required);
        self
    }

    /// Returns the arguments of a call, or an error if they are not those of the prompt.
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

/// Returns the arguments that a call has.
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
            None => format!(
                "`arguments` of `prompts/get` should be an object of strings: {}",
                plain_error(&error)
            ),
        })
    })
}

/// A type that a prompt handler may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return a `String` or `&str` (one user message), a `PromptMessage`, a `Vec` of them, a `GetPromptResult`, or a `Result` of one of them"
)]
pub trait IntoPromptResult {
    /// Converts the value into the result, or into an error.
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        Ok(self)
    }
}

/// An outcome is the answer as it is. For handlers that pass on the result of another server.
impl IntoPromptResult for Outcome {
    fn into_prompt_result(self) -> Result<GetPromptResult, RequestError> {
        Err(RequestError::other(self))
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

/// A message of the user with an image or a resource.
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
