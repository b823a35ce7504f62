//! Lists that are sent page by page.

use serde::{Deserialize, Serialize};

use crate::{JsonObject, Meta};

/// The params of a list request.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ListParams {
    /// The `nextCursor` of the previous page. Absent requests the first page; an empty string is a cursor.
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
    /// Creates params for the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Defines the result of a list request: a struct with one field for the items, and the members that all of them share.
macro_rules! list_result {
    ($(#[$about:meta])* $name:ident { $(#[$doc:meta])* $items:ident: $item:ty }) => {
        $(#[$about])*
        #[non_exhaustive]
        #[derive(Clone, Debug, Default, serde::Deserialize, PartialEq, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(#[$doc])*
            pub $items: Vec<$item>,
            /// The cursor of the next page. Absent on the last page; an empty string is a cursor.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
            /// How long the result may be cached, in milliseconds. Absent or negative means not at all.
            #[serde(
                default,
                deserialize_with = "crate::common::wire::optional_integer",
                skip_serializing_if = "Option::is_none"
            )]
            pub ttl_ms: Option<i64>,
            /// The audience that may share the cached result. Absent means none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cache_scope: Option<crate::schema::base::CacheScope>,
            /// The type of the result. Absent means [`ResultType::Complete`](crate::schema::ResultType::Complete).
            #[serde(skip_serializing_if = "Option::is_none")]
            pub result_type: Option<crate::schema::base::ResultType>,
            /// Metadata.
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            pub meta: Option<crate::Meta>,
            /// Fields that this crate does not know.
            #[serde(flatten)]
            pub extra: crate::JsonObject,
        }

        impl $name {
            /// Creates a result with a single page.
            pub fn new($items: Vec<$item>) -> Self {
                Self { $items, ..Self::default() }
            }
        }
    };
}
pub(in crate::schema) use list_result;

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
}
