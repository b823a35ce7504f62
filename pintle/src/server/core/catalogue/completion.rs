use std::{
    any::Any,
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use pintle_proto::server::Outcome;
use pintle_types::{Meta, RpcError, plain_error, schema::CompleteParams};

use crate::{
    Suggestion,
    server::{
        Cx, Description, FromCall, Handler, HandlerError, RequestError,
        core::handler::extract::{HandlerKind, Need},
    },
};

/// A partial value that a client wants completed: the argument of a completer, as in
/// [`ToolRoute::complete`](crate::server::ToolRoute::complete).
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Partial {
    /// The text so far.
    pub value: String,
    /// The values of other arguments that are already chosen.
    pub context: BTreeMap<String, String>,
    /// The authenticated principal, if there is one.
    pub principal: Option<String>,
}

impl Partial {
    pub(super) fn new(cx: &Cx, params: CompleteParams) -> Self {
        Self {
            value: params.argument.value,
            context: params.context.and_then(|context| context.arguments).unwrap_or_default(),
            principal: cx.principal().map(str::to_owned),
        }
    }
}

impl FromCall for Partial {
    fn describe(description: &mut Description<'_>) {
        description.belongs("Partial", &[HandlerKind::Completer]);
    }

    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        let params = cx.params().decode();
        params
            .map(|params| Self::new(cx, params))
            .map_err(|error| Outcome::Failed(RpcError::invalid_params(plain_error(&error))))
    }
}

/// The values that a completer found, the best first. Clients receive the first hundred.
///
/// ```
/// use pintle::server::Values;
///
/// let found = Values::new(["Oslo", "Osnabrück"]).total(31);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// The values.
    pub values: Vec<String>,
    /// The number of matches, if `values` has only some of them.
    pub total: Option<u64>,
    /// The `_meta` of the result.
    pub meta: Option<Meta>,
}

impl Values {
    /// Creates a list of values.
    pub fn new<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Creates a list of values with labels and remarks, which are part of `_meta`.
    pub fn suggestions(suggestions: impl IntoIterator<Item = Suggestion>) -> Self {
        let mut found = Self::default();
        found.values = Suggestion::write(suggestions.into_iter().collect(), &mut found.meta);
        found
    }

    /// Sets the number of matches.
    #[must_use]
    pub fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Adds to the `_meta` of the result, for clients that know its keys. A label or a remark for each value is a [`Suggestion`].
    ///
    /// ```
    /// use pintle::{server::Values, types::Meta};
    ///
    /// let mut meta = Meta::new();
    /// meta.insert("com.example/source", "gazetteer");
    /// let airports = Values::new(["OSL", "OSD"]).meta(meta);
    /// ```
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        let all = self.meta.get_or_insert_default().as_object_mut();
        all.extend(meta.into_object());
        self
    }
}

/// A type that a completer may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a completer",
    note = "return a `Vec<String>`, a `Vec<&str>`, a `Vec<Suggestion>`, `Values`, or a `Result` of one of them"
)]
pub trait IntoValues: sealed::ValuesSealed {
    /// Converts the result into values, or into the error that is logged.
    fn into_values(self) -> Result<Values, RequestError>;
}

mod sealed {
    use crate::server::{HandlerError, RequestError};

    #[expect(unnameable_types, reason = "nobody else implements it")]
    pub trait ValuesSealed {}

    impl ValuesSealed for super::Values {}
    impl ValuesSealed for Vec<crate::Suggestion> {}
    impl<T: Into<String>> ValuesSealed for Vec<T> {}
    impl<T: super::IntoValues, E: HandlerError<RequestError>> ValuesSealed for Result<T, E> {}
}

impl IntoValues for Values {
    fn into_values(self) -> Result<Values, RequestError> {
        Ok(self)
    }
}

impl IntoValues for Vec<Suggestion> {
    fn into_values(self) -> Result<Values, RequestError> {
        Ok(Values::suggestions(self))
    }
}

impl<T: Into<String>> IntoValues for Vec<T> {
    fn into_values(self) -> Result<Values, RequestError> {
        Ok(Values::new(self))
    }
}

impl<T: IntoValues, E: HandlerError<RequestError>> IntoValues for Result<T, E> {
    fn into_values(self) -> Result<Values, RequestError> {
        self.map_err(Into::into)?.into_values()
    }
}

/// The completers of a route, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers {
    /// Those that the author added.
    declared: BTreeMap<String, Completer>,
    /// Those that complete from a list of allowed values, for arguments without a declared one.
    values: BTreeMap<String, Completer>,
}

pub(crate) type Completer = Arc<dyn Fn(Cx, Partial) -> CompleterFuture + Send + Sync>;
type CompleterFuture = Pin<Box<dyn Future<Output = Result<Values, RequestError>> + Send>>;

impl Completers {
    /// Adds a completer, and returns what is wrong with it and the state that it takes. If the argument has a completer already,
    /// it returns `None` and changes nothing.
    pub(crate) fn add<M: 'static, H>(
        &mut self,
        argument: String,
        completer: H,
    ) -> Option<(Vec<String>, Vec<Need>)>
    where
        H: Handler<M, Output: IntoValues>,
    {
        let mut description = Description::new(HandlerKind::Completer, &argument);
        H::describe(&mut description);
        let Description { faults, needs, .. } = description;
        let Entry::Vacant(vacant) = self.declared.entry(argument) else { return None };
        vacant.insert(Arc::new(move |cx, _| {
            let completing = completer.call(cx);
            Box::pin(async move { completing.await.map_err(RequestError::other)?.into_values() })
        }));
        Some((faults, needs))
    }

    pub(crate) fn add_values(&mut self, argument: String, values: Vec<String>) {
        self.values.insert(argument, fixed(values));
    }

    pub(crate) fn get(&self, argument: &str) -> Option<Completer> {
        self.declared.get(argument).or_else(|| self.values.get(argument)).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.declared.is_empty() && self.values.is_empty()
    }
}

/// Creates a completer that returns the values of a list that start with the text, ignoring case.
pub(crate) fn fixed(values: Vec<String>) -> Completer {
    Arc::new(move |_, partial| {
        let typed = partial.value.to_lowercase();
        let fitting = values.iter().filter(|value| value.to_lowercase().starts_with(&typed));
        let fitting = Values::new(fitting.cloned());
        Box::pin(async move { Ok(fitting) })
    })
}

/// Runs a completer and catches its panic.
pub(crate) async fn caught(
    begin: impl FnOnce() -> CompleterFuture,
) -> Result<Result<Values, RequestError>, Box<dyn Any + Send>> {
    let mut completing = catch_unwind(AssertUnwindSafe(begin))?;
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| completing.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.declared.keys()).entries(self.values.keys()).finish()
    }
}
