use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ElicitSchema;
use crate::common::{object, wire::words};
use crate::schema::tasks::TaskMetadata;
use crate::{JsonObject, Meta};

/// The params of `elicitation/create`: a form or a URL to open, distinguished by `mode`.
///
/// ```
/// use pintle_types::schema::{ElicitFormParams, ElicitParams, ElicitSchema, PrimitiveSchema, StringSchema};
///
/// let mut schema = ElicitSchema::new();
/// schema.properties.insert("name", PrimitiveSchema::String(StringSchema::new()));
/// schema.required = Some(vec!["name".into()]);
/// let question = ElicitParams::Form(ElicitFormParams::new("Who are you?", schema));
/// # assert!(serde_json::to_string(&question)?.starts_with(r#"{"mode":"form","message":"Who are you?""#));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Wide", untagged)]
pub enum ElicitParams {
    /// A form. Also meant if `mode` is absent.
    Form(ElicitFormParams),
    /// A URL to open.
    Url(ElicitUrlParams),
}

object! {
    /// A form for the user to fill in.
    #[derive(Debug)]
    ElicitFormParams {
        /// The mode. Absent means [`ElicitMode::Form`], the only one that older peers have.
        mode?: ElicitMode,
        /// The message for the user: what is asked, and why.
        message: String,
        /// The fields.
        requested_schema: ElicitSchema,
        /// Requests a task instead of an answer. One session-era revision only.
        task?: TaskMetadata,
        ..meta
    }
}

impl ElicitFormParams {
    /// Creates a form with the fields of `requested_schema`.
    pub fn new(message: impl Into<String>, requested_schema: ElicitSchema) -> Self {
        Self {
            mode: Some(ElicitMode::Form),
            message: message.into(),
            requested_schema,
            task: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

object! {
    /// A URL for the user to open.
    #[derive(Debug)]
    ElicitUrlParams {
        /// The mode, always [`ElicitMode::Url`].
        mode: ElicitMode,
        /// The message for the user: why the URL is to be opened.
        message: String,
        /// The URL.
        url: String,
        /// The id that the notification of completion repeats. One session-era revision only.
        elicitation_id?: String,
        /// Requests a task instead of an answer. One session-era revision only.
        task?: TaskMetadata,
        ..meta
    }
}

impl ElicitUrlParams {
    /// Creates a request to open `url`.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            mode: ElicitMode::Url,
            message: message.into(),
            url: url.into(),
            elicitation_id: None,
            task: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }
}

words! {
    /// The way in which the user is asked.
    ElicitMode {
        /// With a form.
        Form = "form",
        /// With a URL to open.
        Url = "url",
    }
}

object! {
    /// The action of the user.
    #[derive(Debug)]
    ElicitResult {
        /// The action of the user.
        action: ElicitAction,
        /// The values of an accepted form: strings, numbers, booleans and lists of strings.
        content?: JsonObject,
        ..meta
    }
    /// Creates a result without content.
    new(action: ElicitAction)
}

/// The result of `elicitation/create`.
#[expect(clippy::exhaustive_enums, reason = "every revision has these three")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user filled in the form, or agreed to open the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the request without a choice.
    Cancel,
}

object! {
    /// The params of `notifications/elicitation/complete`.
    #[derive(Debug, Default)]
    ElicitationCompleteParams {
        /// The `elicitationId`.
        elicitation_id: String,
        ..meta
    }
    /// Creates params for the elicitation that has ended.
    new(elicitation_id: impl Into<String>)
}

/// The members of both modes: `mode` need not come first, and buffering would lose the order of the fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wide {
    mode: Option<ElicitMode>,
    message: String,
    requested_schema: Option<ElicitSchema>,
    url: Option<Value>,
    elicitation_id: Option<Value>,
    task: Option<TaskMetadata>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
    #[serde(flatten)]
    extra: JsonObject,
}

impl TryFrom<Wide> for ElicitParams {
    type Error = String;

    fn try_from(wide: Wide) -> Result<Self, String> {
        let Wide { mode, message, requested_schema, url, elicitation_id, task, meta, mut extra } = wide;
        match mode {
            None | Some(ElicitMode::Form) => {
                let requested_schema = requested_schema.ok_or("missing field `requestedSchema` of a form")?;
                extra.extend(url.map(|url| ("url".to_owned(), url)));
                extra.extend(elicitation_id.map(|id| ("elicitationId".to_owned(), id)));
                Ok(Self::Form(ElicitFormParams { mode, message, requested_schema, task, meta, extra }))
            }
            Some(ElicitMode::Url) => {
                let url = text("url", url)?.ok_or("missing field `url` of mode `url`")?;
                let elicitation_id = text("elicitationId", elicitation_id)?;
                let schema = requested_schema.and_then(|schema| serde_json::to_value(schema).ok());
                extra.extend(schema.map(|schema| ("requestedSchema".to_owned(), schema)));
                let mode = ElicitMode::Url;
                Ok(Self::Url(ElicitUrlParams { mode, message, url, elicitation_id, task, meta, extra }))
            }
            Some(ElicitMode::Other(mode)) => {
                Err(format!("no such elicitation mode: `{mode}`; expected `form` or `url`"))
            }
        }
    }
}

fn text(field: &str, value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("invalid `{field}`: expected a string, got {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modes_come_back() {
        for text in [
            r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}}}}"#,
            r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{}},"novel":1,"url":7}"#,
            r#"{"mode":"url","message":"Go","url":"https://example.com/","elicitationId":"e","task":{"ttl":1}}"#,
        ] {
            let params: ElicitParams = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
    }

    #[test]
    fn the_mode_may_come_last() {
        let text = r#"{"url":"https://example.com/","message":"Go","mode":"url"}"#;
        assert!(matches!(serde_json::from_str(text).unwrap(), ElicitParams::Url(_)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, detail) in [
            (r#"{"message":"Who?"}"#, "missing field `requestedSchema` of a form"),
            (r#"{"mode":"url","message":"Go"}"#, "missing field `url` of mode `url`"),
            (r#"{"mode":"url","message":"Go","url":7}"#, "invalid `url`: expected a string, got 7"),
            (r#"{"mode":"dance","message":"Go"}"#, "no such elicitation mode: `dance`"),
            (r#"{"mode":"url","url":"https://example.com/"}"#, "missing field `message`"),
        ] {
            let error = serde_json::from_str::<ElicitParams>(text).unwrap_err().to_string();
            assert!(error.starts_with(detail), "{error}");
        }
    }
}
