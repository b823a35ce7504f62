//! What many params and results share.

use serde::{Deserialize, Serialize};

use crate::schema::common::wire::words;
use crate::{JsonObject, Meta};

/// Params that say nothing beyond `_meta`: `ping`, `server/discover`, `roots/list`, the list-changed notifications.
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
    /// Params without metadata: `{}`.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A result that says nothing but "done".
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
    /// What kind of result it is; absent means [`ResultType::Complete`].
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
    /// A result without metadata: `{}`.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Which page of a list is asked for.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ListParams {
    /// The `nextCursor` of the page before. Absent asks for the first page; an empty string is a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ListParams {
    /// Asks for the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

words! {
    /// What kind of result a result is.
    ///
    /// Plain results are made without one: absent means complete, and who prints for a peer that wants the word adds it.
    ResultType {
        /// The answer.
        Complete = "complete",
        /// Not yet the answer: see [`InputRequiredResult`](crate::schema::InputRequiredResult).
        InputRequired = "input_required",
        /// The answer will come from a task: see [`DetailedTask`](crate::schema::DetailedTask).
        Task = "task",
    }
}

words! {
    /// Who may share a cached result.
    CacheScope {
        /// Anyone.
        Public = "public",
        /// Only the authorization context that asked.
        Private = "private",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_cursor_is_a_cursor() {
        let first: ListParams = serde_json::from_str("{}").unwrap();
        let next: ListParams = serde_json::from_str(r#"{"cursor":""}"#).unwrap();
        assert_eq!((first.cursor.as_deref(), next.cursor.as_deref()), (None, Some("")));
        assert_eq!(serde_json::to_string(&next).unwrap(), r#"{"cursor":""}"#);
    }

    #[test]
    fn an_empty_result_prints_nothing() {
        assert_eq!(serde_json::to_string(&EmptyResult::new()).unwrap(), "{}");
    }
}
