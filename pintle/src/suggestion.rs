use pintle_types::schema::CompleteResult;
use serde::{Deserialize, Serialize};

/// A value that completes an argument, with what a person may read about it.
///
/// The protocol has a text for each value and nothing else. The rest is sent under one key of the result's `_meta`, which other
/// clients ignore.
///
/// ```
/// # #[cfg(feature = "server")] {
/// use pintle::{Suggestion, server::{Partial, prompt}};
///
/// async fn airports(typed: Partial) -> Vec<Suggestion> {
///     let all = [("OSL", "Oslo Gardermoen", "Norway"), ("OSD", "Åre Östersund", "Sweden")];
///     let found = all.into_iter().filter(|(code, ..)| code.starts_with(&typed.value));
///     found.map(|(code, name, country)| Suggestion::new(code).label(name).detail(country)).collect()
/// }
///
/// let plan = prompt("plan", || async { "Plan a journey." }).argument("from", "Where it begins.").complete("from", airports);
/// # }
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Suggestion {
    /// The value of the argument.
    pub value: String,
    /// A name to show in place of the value.
    pub label: Option<String>,
    /// A remark to show beside it.
    pub detail: Option<String>,
    /// The kind of thing that the value is, for example `airport`, for an icon.
    pub kind: Option<String>,
}

/// The key in the `_meta` of a completion result. Its value is a list of `Details` with as many elements as there are values.
const KEY: &str = "dev.pintle/suggestions";

/// The number of values in one result that the protocol allows.
#[cfg(feature = "server")]
pub(crate) const MAX_VALUES: usize = 100;

/// The members of a suggestion besides its value.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

impl Suggestion {
    /// Creates a suggestion of a value alone.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    /// Sets a name to show in place of the value.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets a remark to show beside the value.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the kind of thing that the value is, for an icon.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Returns the suggestions of a result, one for each value. Unreadable details count as absent.
    pub fn of(result: &CompleteResult) -> Vec<Self> {
        let details =
            result.meta.as_ref().and_then(|meta| meta.get(KEY)).and_then(serde_json::Value::as_array);
        let values = result.completion.values.iter().enumerate();
        let suggestion = |(at, value): (usize, &String)| {
            let details = details.and_then(|all| all.get(at)).map(Details::deserialize);
            let Details { label, detail, kind } = details.and_then(Result::ok).unwrap_or_default();
            Self { value: value.clone(), label, detail, kind }
        };
        values.map(suggestion).collect()
    }

    /// Returns the values, and writes their details into the metadata of the result, if there are any and as far as values
    /// are sent.
    #[cfg(feature = "server")]
    pub(crate) fn write(suggestions: Vec<Self>, meta: &mut Option<pintle_types::Meta>) -> Vec<String> {
        let is_plain = |it: &Self| it.label.is_none() && it.detail.is_none() && it.kind.is_none();
        let detailed = !suggestions.iter().all(is_plain);
        let mut details = Vec::new();
        let mut values = Vec::with_capacity(suggestions.len());
        for Self { value, label, detail, kind } in suggestions {
            values.push(value);
            if detailed && details.len() < MAX_VALUES {
                details.push(serde_json::to_value(Details { label, detail, kind }).unwrap_or_default());
            }
        }
        if detailed {
            meta.get_or_insert_default().insert(KEY, details);
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::{Meta, schema::Completion};
    use serde_json::{Value, json};

    use super::*;

    fn result(values: &[&str], details: Value) -> CompleteResult {
        let values = values.iter().copied().map(String::from).collect();
        let mut result = CompleteResult::new(Completion::new(values));
        let mut meta = Meta::new();
        meta.insert(KEY, details);
        result.meta = Some(meta);
        result
    }

    #[test]
    fn details_belong_to_the_value_at_their_place() {
        let details = json!([{"label": "Oslo", "kind": "town", "later": 1}, {}, {"detail": "S"}]);
        let read = Suggestion::of(&result(&["a", "b"], details));
        assert_eq!(read, [Suggestion::new("a").label("Oslo").kind("town"), Suggestion::new("b")]);
        for unreadable in [json!("x"), json!([3, {"label": 7}]), json!([]), json!(null)] {
            let read = Suggestion::of(&result(&["a", "b"], unreadable));
            assert_eq!(read, [Suggestion::new("a"), Suggestion::new("b")]);
        }
    }
}
