use std::fmt;

/// Prints whether a secret is there, in place of it.
pub(in crate::schema) struct Redacted(pub(in crate::schema) bool);

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "Some(<redacted>)" } else { "None" })
    }
}

/// Implements `Debug` for a struct without the values of its secrets, which are the fields after the semicolon.
macro_rules! redacted_debug {
    ($type:ident { $($field:ident),*; $($secret:ident),* }) => {
        /// The state of a call and the answers of users are not printed.
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))*
                    $(.field(stringify!($secret), &$crate::schema::base::Redacted(self.$secret.is_some())))*
                    .finish()
            }
        }
    };
}
pub(in crate::schema) use redacted_debug;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::{CallToolParams, GetPromptParams, InputRequiredResult, ReadResourceParams};

    #[test]
    fn states_and_answers_are_not_printed() {
        let value = json!({
            "name": "book", "uri": "note://a", "arguments": {}, "resultType": "input_required",
            "inputResponses": {"pin": {"action": "accept", "content": {"pin": "canary-answer"}}},
            "requestState": "canary-state"
        });
        let printed = [
            format!("{:?}", serde_json::from_value::<CallToolParams>(value.clone()).unwrap()),
            format!("{:?}", serde_json::from_value::<GetPromptParams>(value.clone()).unwrap()),
            format!("{:#?}", serde_json::from_value::<ReadResourceParams>(json!({
                "uri": "note://a", "inputResponses": value["inputResponses"], "requestState": "canary-state"
            })).unwrap()),
            format!(
                "{:?}",
                serde_json::from_value::<InputRequiredResult>(json!({
                    "resultType": "input_required", "requestState": "canary-state"
                }))
                .unwrap()
            ),
        ];
        for printed in printed {
            assert!(
                !printed.contains("canary") && printed.contains("request_state: Some(<redacted>)"),
                "{printed}"
            );
        }
        assert!(format!("{:?}", CallToolParams::new("book")).contains("request_state: None"));
    }
}
