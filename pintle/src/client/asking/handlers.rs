use std::{
    collections::HashMap,
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use pintle_types::{
    JsonObject, RawObject, RpcError, method, plain_error,
    schema::{
        CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitParams, ElicitResult,
        ListRootsResult,
    },
};

use super::{
    answer::{Asker, IntoReply, Question, complete},
    custom::CustomHandler,
    elicit_url::ElicitUrl,
    roots::Roots,
};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A handler of one kind of input request.
pub(in crate::client) type TypedHandler<P, R> =
    Arc<dyn Fn(Question<P>) -> BoxFuture<Result<R, RpcError>> + Send + Sync>;

/// A handler of input requests of every kind, in canonical shapes.
pub type QuestionHandler =
    Arc<dyn Fn(ForwardQuestion) -> BoxFuture<Result<RawObject, RpcError>> + Send + Sync>;

/// Returns a handler that refuses all input requests.
pub fn refuse_questions() -> QuestionHandler {
    static REFUSING: std::sync::OnceLock<QuestionHandler> = std::sync::OnceLock::new();
    let refusing = || -> QuestionHandler {
        Arc::new(|question| Box::pin(async move { Err(RpcError::method_not_found(&question.method)) }))
    };
    REFUSING.get_or_init(refusing).clone()
}

/// An input request of a server, in canonical shapes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForwardQuestion {
    /// `elicitation/create`, `sampling/createMessage`, `roots/list`, or the method of an extension.
    pub method: String,
    /// The params of the question.
    pub params: RawObject,
    /// The key that the server gave the question, if it is known.
    pub key: Option<Arc<str>>,
}

/// The handlers of input requests. They determine the client's capabilities.
#[derive(Clone, Default)]
pub(in crate::client) struct Handlers {
    pub(in crate::client) form: Option<TypedHandler<ElicitFormParams, ElicitResult>>,
    pub(in crate::client) url: Option<TypedHandler<ElicitUrl, ElicitResult>>,
    pub(in crate::client) sample: Option<TypedHandler<CreateMessageParams, CreateMessageResult>>,
    pub(in crate::client) sample_tools: bool,
    pub(in crate::client) sample_context: bool,
    pub(in crate::client) roots: Option<Roots>,
    /// The handler of all input requests, unparsed, in place of the others.
    pub(in crate::client) raw: Option<QuestionHandler>,
    /// The handlers of methods that the protocol does not define.
    pub(in crate::client) custom: Arc<HashMap<Box<str>, CustomHandler>>,
}

/// Boxes a handler.
pub(in crate::client) fn handler<P, T, F, Fut>(handle: F) -> TypedHandler<P, T>
where
    P: Send + 'static,
    T: 'static,
    F: Fn(Question<P>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoReply<T>> + Send + 'static,
{
    let handle = Arc::new(handle);
    Arc::new(move |question| {
        let handle = handle.clone();
        // Called inside, so that a panic before the first `await` is caught like any other.
        Box::pin(async move { handle(question).await.into_reply() })
    })
}

impl Handlers {
    /// Returns these handlers, completed by those of `base`.
    pub(in crate::client) fn or(&self, base: &Self) -> Self {
        Self {
            form: self.form.clone().or_else(|| base.form.clone()),
            url: self.url.clone().or_else(|| base.url.clone()),
            sample: self.sample.clone().or_else(|| base.sample.clone()),
            sample_tools: base.sample_tools,
            sample_context: base.sample_context,
            roots: base.roots.clone(),
            raw: self.raw.clone().or_else(|| base.raw.clone()),
            custom: base.custom.clone(),
        }
    }

    /// Whether there is a handler that `base` lacks.
    pub(in crate::client) fn adds_to(&self, base: &Self) -> bool {
        (self.form.is_some() && base.form.is_none())
            || (self.url.is_some() && base.url.is_none())
            || (self.sample.is_some() && base.sample.is_none())
    }

    /// Answers an input request of either era. A panic of the handler becomes an error.
    pub(in crate::client) async fn answer(
        &self,
        asker: Asker,
        method: &str,
        params: &RawObject,
    ) -> Result<RawObject, RpcError> {
        if let Some(tasks) = &asker.tasks {
            if tasks.has_method(method) {
                return tasks.serve(method, params).await;
            }
            if tasks.is_wanted(method, params) {
                let tasks = tasks.clone();
                return tasks.start(self.clone(), asker, method, params);
            }
        }
        if let Some(raw) = &self.raw
            && method != method::PING
            && !self.custom.contains_key(method)
        {
            let question =
                ForwardQuestion { method: method.to_owned(), params: params.clone(), key: asker.key };
            return finished(caught(raw(question)).await, method);
        }
        match method {
            method::ELICITATION_CREATE => match decode(params)? {
                ElicitParams::Form(form) => {
                    let schema: Option<JsonObject> = params.decode_member("requestedSchema").ok().flatten();
                    let result = call(self.form.as_ref(), asker, form, method).await?;
                    print(&complete(schema.as_ref(), result)?)
                }
                ElicitParams::Url(url) => {
                    // Who cannot show pages says so, whatever the page.
                    let url = match &self.url {
                        Some(_) => ElicitUrl::new(url)?,
                        None => return Err(RpcError::method_not_found(method)),
                    };
                    print(&complete(None, call(self.url.as_ref(), asker, url, method).await?)?)
                }
                _ => Err(RpcError::invalid_params("a mode of elicitation that this client does not know")),
            },
            method::SAMPLING_CREATE_MESSAGE => {
                print(&call(self.sample.as_ref(), asker, decode(params)?, method).await?)
            }
            method::ROOTS_LIST => match &self.roots {
                Some(roots) => print(&ListRootsResult::new(roots.list())),
                None => Err(RpcError::method_not_found(method)),
            },
            // The engine leaves it to the layers.
            method::PING => Ok(RawObject::empty()),
            _ => match self.custom.get(method) {
                Some(handler) => finished(caught(handler(asker, params)?).await, method),
                None => Err(RpcError::method_not_found(method)),
            },
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").finish_non_exhaustive()
    }
}

async fn call<P, R>(
    handler: Option<&TypedHandler<P, R>>,
    asker: Asker,
    params: P,
    method: &str,
) -> Result<R, RpcError> {
    let handler = handler.ok_or_else(|| RpcError::method_not_found(method))?;
    finished(caught(handler(Question::new(asker, params))).await, method)
}

/// Returns the reply of a handler, or an error if it panicked.
fn finished<T>(reply: Option<Result<T, RpcError>>, method: &str) -> Result<T, RpcError> {
    match reply {
        Some(reply) => reply,
        None => {
            tracing::error!(method, "a handler panicked");
            Err(RpcError::internal("the client failed to answer"))
        }
    }
}

/// Runs a future; `None` if it panics.
pub(in crate::client) async fn caught<T>(mut future: BoxFuture<T>) -> Option<T> {
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

pub(super) fn decode<'a, T: serde::Deserialize<'a>>(params: &'a RawObject) -> Result<T, RpcError> {
    params.decode().map_err(|error| RpcError::invalid_params(plain_error(&error)))
}

pub(super) fn print(result: &impl serde::Serialize) -> Result<RawObject, RpcError> {
    RawObject::from_serialize(result).map_err(|error| RpcError::internal(error.to_string()))
}
