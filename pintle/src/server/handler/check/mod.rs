//! What is looked at before a tool runs and after: its arguments and its result, against its schemas.

#[cfg(feature = "validation")]
mod by_schema;
#[cfg(feature = "validation")]
mod integers;

use std::{fmt, sync::Arc};

use pintle_types::{JsonObject, schema::CallToolResult};

/// Whose arguments and results are looked at.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "without the feature `validation` nobody looks")]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Arc<JsonObject>,
    /// Whether the input schema is that of the type that the handler takes.
    pub(crate) typed: bool,
    /// Whether the author asked for more than that.
    pub(crate) asks_more: bool,
    /// Whether a property has a default that the type does not know.
    pub(crate) defaults: bool,
    pub(crate) output: Option<&'a Arc<JsonObject>>,
    /// Whether the output schema is that of the type that the handler gives, and asks for no more.
    pub(crate) gives_typed: bool,
}

/// The checks of one tool. The default looks at nothing: reading the arguments is a check too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check(Option<Arc<dyn Judge>>);

/// Who knows what fits a tool's schemas.
pub(crate) trait Judge: fmt::Debug + Send + Sync {
    /// What is wrong with the arguments before the handler sees them, or what they are with their defaults if that is
    /// something else.
    fn before(&self, arguments: &str) -> Result<Option<String>, String>;

    /// Whether the schema asks for more than reading does.
    fn asks_more(&self) -> bool;

    /// What is wrong with arguments that could not be read, if the schema can tell.
    fn explain(&self, arguments: &str) -> Option<String>;

    /// What is wrong with the result.
    fn after(&self, result: &CallToolResult) -> Result<(), String>;
}

type MakeJudge = fn(&Subject<'_>) -> Result<Arc<dyn Judge>, String>;

/// Whoever comes first judges; features add to it.
const JUDGES: &[MakeJudge] = &[
    #[cfg(feature = "validation")]
    by_schema::judge,
];

impl Check {
    /// Compiles the schemas, once.
    pub(crate) fn of(subject: &Subject<'_>) -> Result<Self, String> {
        JUDGES.first().map(|judge| judge(subject)).transpose().map(Self)
    }

    pub(crate) fn before(&self, arguments: &str) -> Result<Option<String>, String> {
        self.0.as_ref().map_or(Ok(None), |judge| judge.before(arguments))
    }

    pub(crate) fn asks_more(&self) -> bool {
        self.0.as_ref().is_some_and(|judge| judge.asks_more())
    }

    pub(crate) fn explain(&self, arguments: &str) -> Option<String> {
        self.0.as_ref()?.explain(arguments)
    }

    pub(crate) fn after(&self, result: &CallToolResult) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |judge| judge.after(result))
    }
}
