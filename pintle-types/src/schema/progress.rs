use crate::common::{ProgressToken, object, wire};

object! {
    /// The params of `notifications/progress`.
    #[derive(Debug)]
    ProgressParams {
        /// The token of the request.
        progress_token: ProgressToken,
        /// The progress so far. It increases with each notification.
        #[serde(serialize_with = "wire::number")]
        progress: f64,
        /// The total, if known.
        #[serde(serialize_with = "wire::optional_number")]
        total?: f64,
        /// A message about the current step, for people.
        message?: String,
        ..meta
    }
    /// Creates progress without a known total.
    new(progress_token: impl Into<ProgressToken>, progress: f64)
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
