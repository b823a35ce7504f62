use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ElicitSchema;
use crate::schema::{common::wire::words, tasks::TaskMetadata};
use crate::{JsonObject, Meta};

/// What a server asks the user: a form or a page, told apart by `mode`.
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
    /// A form. Also when `mode` is absent.
    Form(ElicitFormParams),
    /// A page.
    Url(ElicitUrlParams),
}

/// A form for the user to fill in.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitFormParams {
    /// Absent means [`ElicitMode::Form`], which is all that older peers know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ElicitMode>,
    /// What is asked, and why.
    pub message: String,
    /// The fields.
    pub requested_schema: ElicitSchema,
    /// Asks for a task instead of an answer. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitFormParams {
    /// A form with the fields of `requested_schema`.
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

/// A page for the user to go to.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitUrlParams {
    /// Always [`ElicitMode::Url`].
    pub mode: ElicitMode,
    /// Why to go there.
    pub message: String,
    /// Where to go.
    pub url: String,
    /// What the notification of its end will name. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Asks for a task instead of an answer. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitUrlParams {
    /// A page at `url`.
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
    /// How the user is asked.
    ElicitMode {
        /// By a form.
        Form = "form",
        /// By a page.
        Url = "url",
    }
}

/// What the user did.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ElicitResult {
    /// What they did.
    pub action: ElicitAction,
    /// What they filled in, when they accepted a form: strings, numbers, booleans and lists of strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitResult {
    /// The user did `action` and filled in nothing.
    pub fn new(action: ElicitAction) -> Self {
        Self { action, content: None, meta: None, extra: JsonObject::new() }
    }
}

/// What a user did with a question.
#[expect(clippy::exhaustive_enums, reason = "every revision has these three")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Filled in the form, or agreed to go to the page.
    Accept,
    /// Said no.
    Decline,
    /// Went away without a word.
    Cancel,
}

/// Which URL elicitation has come to its end.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteParams {
    /// Its `elicitationId`.
    pub elicitation_id: String,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitationCompleteParams {
    /// It has ended.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into(), ..Self::default() }
    }
}

/// Everything that either mode may hold: `mode` need not come first, and buffering would lose the order of the fields.
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
        for (text, said) in [
            (r#"{"message":"Who?"}"#, "missing field `requestedSchema` of a form"),
            (r#"{"mode":"url","message":"Go"}"#, "missing field `url` of mode `url`"),
            (r#"{"mode":"url","message":"Go","url":7}"#, "invalid `url`: expected a string, got 7"),
            (r#"{"mode":"dance","message":"Go"}"#, "no such elicitation mode: `dance`"),
            (r#"{"mode":"url","url":"https://example.com/"}"#, "missing field `message`"),
        ] {
            let error = serde_json::from_str::<ElicitParams>(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
