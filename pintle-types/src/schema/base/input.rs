use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{ResultType, redacted::redacted_debug};
use crate::JsonObject;
use crate::common::object;

/// The input requests of one round, by key.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// The responses of one round, by the key of their request. The request determines the shape of a response.
pub type InputResponses = BTreeMap<String, Value>;

/// A request for input from the client: a request without an id.
///
/// ```
/// use pintle_types::schema::{EmptyParams, InputRequest};
///
/// let question = InputRequest::new("roots/list", &EmptyParams::new())?;
/// assert_eq!(serde_json::to_string(&question)?, r#"{"method":"roots/list","params":{}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct InputRequest {
    /// The method of the request.
    pub method: String,
    /// The params of the request. Not decoded, so that a form keeps the order of its fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl InputRequest {
    /// Creates a request with params. Fails only if `params` cannot be printed as JSON.
    pub fn new<T: Serialize + ?Sized>(method: impl Into<String>, params: &T) -> serde_json::Result<Self> {
        Ok(Self { method: method.into(), params: Some(to_raw_value(params)?), extra: JsonObject::new() })
    }

    /// Decodes the params. Absent params are read as `{}`.
    pub fn params_as<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.params.as_deref().map_or("{}", RawValue::get))
    }
}

impl PartialEq for InputRequest {
    fn eq(&self, other: &Self) -> bool {
        let [ours, theirs] = [self, other].map(|request| request.params.as_deref().map(RawValue::get));
        self.method == other.method && self.extra == other.extra && ours == theirs
    }
}

object! {
    /// A result that asks for input: the client sends the request again, with the responses.
    InputRequiredResult {
        /// The type of the result, always [`ResultType::InputRequired`].
        result_type: ResultType,
        /// The input requests, by key.
        input_requests?: InputRequests,
        /// The state that the client sends back unchanged.
        request_state?: String,
        ..meta
    }
}

redacted_debug!(InputRequiredResult { result_type, input_requests, meta, extra; request_state });

impl InputRequiredResult {
    /// Creates a result without requests. At least one of `input_requests` and `request_state` has to be set.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Default for InputRequiredResult {
    fn default() -> Self {
        Self {
            result_type: ResultType::InputRequired,
            input_requests: None,
            request_state: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ElicitParams, EmptyParams};

    #[test]
    fn a_round_comes_back_with_its_forms_in_order() {
        let text = r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}}}},"requestState":"s"}"#;
        let result: InputRequiredResult = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        let ElicitParams::Form(form) = result.input_requests.unwrap()["who"].params_as().unwrap() else {
            panic!()
        };
        assert_eq!(
            form.requested_schema.properties.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            ["z", "a"]
        );
    }

    #[test]
    fn a_round_can_be_made_from_a_tree() {
        let value = serde_json::json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list", "params": {}, "novel": 1}}});
        let result: InputRequiredResult = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&result).unwrap(), value);
    }

    #[test]
    fn absent_params_read_as_empty() {
        let request: InputRequest = serde_json::from_str(r#"{"method":"roots/list"}"#).unwrap();
        assert_eq!(request.params_as::<EmptyParams>().unwrap(), EmptyParams::new());
    }
}
