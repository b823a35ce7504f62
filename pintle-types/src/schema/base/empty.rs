//! Params and results without members of their own, and the words that results share.

use crate::common::{object, wire::words};

object! {
    /// Params without members of their own: those of `ping`, `server/discover`, `roots/list` and the list-changed
    /// notifications.
    #[derive(Debug, Default)]
    EmptyParams {
        ..meta
    }
    /// Creates params without metadata: `{}`.
    new()
}

object! {
    /// A result without members of its own.
    #[derive(Debug, Default)]
    EmptyResult {
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
    /// Creates a result without metadata: `{}`.
    new()
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
