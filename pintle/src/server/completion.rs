use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

/// A value that is being typed, and what was chosen before it.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Partial {
    /// What there is of it.
    pub value: String,
    /// Values of other arguments.
    pub context: BTreeMap<String, String>,
    /// On whose behalf, if somebody has checked that.
    pub principal: Option<String>,
}

/// Who completes which argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Completer>);

type Completer = Arc<dyn Fn(Partial) -> Pin<Box<dyn Future<Output = Vec<String>> + Send>> + Send + Sync>;

impl Completers {
    pub(crate) fn add<F, Fut>(&mut self, argument: String, completer: F)
    where
        F: Fn(Partial) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.0.insert(argument, Arc::new(move |partial| Box::pin(completer(partial))));
    }

    /// Completes from a fixed list: whatever begins with what there is.
    pub(crate) fn add_values(&mut self, argument: String, values: Vec<String>) {
        self.add(argument, move |partial| {
            let typed = partial.value.to_lowercase();
            let fitting =
                values.iter().filter(|value| value.to_lowercase().starts_with(&typed)).cloned().collect();
            async move { fitting }
        });
    }

    pub(crate) fn get(&self, argument: &str) -> Option<Completer> {
        self.0.get(argument).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
