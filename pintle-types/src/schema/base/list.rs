//! Lists that are sent page by page.

use crate::common::object;

object! {
    /// The params of a list request.
    #[derive(Debug, Default)]
    ListParams {
        /// The `nextCursor` of the previous page. Absent requests the first page; an empty string is a cursor.
        cursor?: String,
        ..meta
    }
    /// Creates params for the first page.
    new()
}

/// Defines the result of a list request: a struct with one field for the items, and the members that all of them share.
macro_rules! list_result {
    ($(#[$about:meta])* $name:ident { $(#[$doc:meta])* $items:ident: $item:ty }) => {
        $crate::common::object! {
            $(#[$about])*
            #[derive(Debug, Default)]
            $name {
                $(#[$doc])*
                $items: Vec<$item>,
                /// The cursor of the next page. Absent on the last page; an empty string is a cursor.
                next_cursor?: String,
                /// How long the result may be cached, in milliseconds. Absent or negative means not at all.
                #[serde(default, deserialize_with = "crate::common::wire::optional_integer")]
                ttl_ms?: i64,
                /// The audience that may share the cached result. Absent means none.
                cache_scope?: crate::schema::CacheScope,
                /// The type of the result. Absent means [`ResultType::Complete`](crate::schema::ResultType::Complete).
                result_type?: crate::schema::ResultType,
                ..meta
            }
            /// Creates a result with a single page.
            new($items: Vec<$item>)
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
