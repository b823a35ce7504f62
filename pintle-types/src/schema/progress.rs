use serde::{Deserialize, Serialize};

use crate::common::{ProgressToken, wire};
use crate::{JsonObject, Meta};

/// The params of `notifications/progress`.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token of the request.
    pub progress_token: ProgressToken,
    /// The progress so far. It increases with each notification.
    #[serde(serialize_with = "wire::number")]
    pub progress: f64,
    /// The total, if known.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub total: Option<f64>,
    /// A message about the current step, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ProgressParams {
    /// Creates progress without a known total.
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        Self {
            progress_token: progress_token.into(),
            progress,
            total: None,
            message: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_and_the_numbers_stay_what_they_were() {
        for text in [
            r#"{"progressToken":1,"progress":50,"total":100}"#,
            r#"{"progressToken":"1","progress":0.5,"message":"half"}"#,
        ] {
            let params: ProgressParams = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
    }
}
