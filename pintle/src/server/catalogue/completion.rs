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

use crate::server::{HandlerError, RequestError};

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
}

impl Values {
    /// Creates a list of values.
    pub fn new<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), total: None }
    }

    /// Sets the number of matches.
    #[must_use]
    pub fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }
}

/// A type that a completer may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a completer",
    note = "return a `Vec<String>`, a `Vec<&str>`, `Values`, or a `Result` of one of them"
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
    impl<T: Into<String>> ValuesSealed for Vec<T> {}
    impl<T: super::IntoValues, E: HandlerError<RequestError>> ValuesSealed for Result<T, E> {}
}

impl IntoValues for Values {
    fn into_values(self) -> Result<Values, RequestError> {
        Ok(self)
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

pub(crate) type Completer = Arc<dyn Fn(Partial) -> CompleterFuture + Send + Sync>;
type CompleterFuture = Pin<Box<dyn Future<Output = Result<Values, RequestError>> + Send>>;

impl Completers {
    /// Adds a completer. Returns `false`, and changes nothing, if the argument has one already.
    pub(crate) fn add<F, Fut>(&mut self, argument: String, completer: F) -> bool
    where
        F: Fn(Partial) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoValues> + Send + 'static,
    {
        let Entry::Vacant(vacant) = self.declared.entry(argument) else { return false };
        vacant.insert(Arc::new(move |partial| {
            let completing = completer(partial);
            Box::pin(async move { completing.await.into_values() })
        }));
        true
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
    Arc::new(move |partial| {
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
