//! Params and results without members of their own, and the words that results share.

use serde::{Deserialize, Serialize};

use crate::common::wire::words;
use crate::{JsonObject, Meta};

/// Params without members of their own: those of `ping`, `server/discover`, `roots/list` and the list-changed
/// notifications.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct EmptyParams {
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl EmptyParams {
    /// Creates params without metadata: `{}`.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A result without members of its own.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
    /// The type of the result. Absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl EmptyResult {
    /// Creates a result without metadata: `{}`.
    pub fn new() -> Self {
        Self::default()
    }
}

words! {
    /// The type of a result.
    ///
    /// Plain results are made without one: absent means complete, and who prints for a peer that wants the word adds it.
    ResultType {
        /// The complete result.
        Complete = "complete",
        /// A request for input: see [`InputRequiredResult`](crate::schema::InputRequiredResult).
        InputRequired = "input_required",
        /// A task that will have the result: see [`DetailedTask`](crate::schema::DetailedTask).
        Task = "task",
    }
}

words! {
    /// The audience of a cached result.
    CacheScope {
        /// Anyone.
        Public = "public",
        /// Only the authorization context of the request.
        Private = "private",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_result_prints_nothing() {
        assert_eq!(serde_json::to_string(&EmptyResult::new()).unwrap(), "{}");
    }
}
