//! Answers of an API as results of tools.

mod cut;
mod fields;

use std::sync::{Arc, OnceLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, LOCATION, RETRY_AFTER},
};
use pintle::{
    content::Embedded,
    schema::Schema,
    types::{
        JsonObject,
        schema::{AudioContent, CallToolResult, ContentBlock, ImageContent, ResourceContents},
    },
};
use serde_json::{Value, json};

pub(crate) use fields::Fields;

use crate::operation::{Media, essence};

/// How many characters of an error are shown.
const SHOWN: usize = 1_000;
/// The advice about an answer that is too large for a result.
const LESS: &str = "ask for less to get the rest";

/// The output schema of a tool, and how answers become what it describes.
#[derive(Debug)]
pub(crate) struct OutputPlan {
    /// The output schema, which accepts every object, and which the tool shares: schemas are most of what tools take.
    pub(crate) shown: Arc<JsonObject>,
    /// Whether the answer is the member `result` of the structured content, because it is no object.
    pub(crate) is_wrapped: bool,
    /// Compiled for the first answer; `None` if that fails.
    compiled: OnceLock<Option<Schema>>,
}

impl OutputPlan {
    /// Plans for a schema that accepts every object beside those that the document describes.
    pub(crate) fn new(shown: JsonObject, is_wrapped: bool) -> Self {
        Self { shown: Arc::new(shown), is_wrapped, compiled: OnceLock::new() }
    }

    /// Returns the schema of answers, as the document describes them.
    fn described(&self) -> Value {
        let schema = self.shown.get("anyOf").and_then(|choices| choices.get(0));
        let schema = match self.is_wrapped {
            true => schema.and_then(|schema| schema.pointer("/properties/result")),
            false => schema,
        };
        let mut schema = schema.cloned().unwrap_or_default();
        if let (Some(definitions), Value::Object(members)) = (self.shown.get("$defs"), &mut schema) {
            members.insert("$defs".to_owned(), definitions.clone());
        }
        schema
    }

    /// Returns what is wrong with an answer.
    fn faults(&self, answer: &Value) -> Option<String> {
        let compiled = self.compiled.get_or_init(|| Schema::compile(&self.described()).ok());
        let faults = compiled.as_ref()?.check(answer).err()?;
        let faults: Vec<_> = faults.iter().take(3).map(ToString::to_string).collect();
        Some(faults.join("; "))
    }
}

/// The plan of what becomes of the answers of an operation.
#[derive(Debug)]
pub(crate) struct AnswerPlan {
    pub(crate) output: Option<OutputPlan>,
    /// The fields that are left, if not all.
    pub(crate) fields: Option<Fields>,
    /// The limit of bytes of the text of a result.
    pub(crate) max_result: usize,
    /// The argument that sets how many items a page has.
    pub(crate) page_size: Option<String>,
}

/// An answer that was read.
pub(crate) enum Answer {
    Json(Value),
    /// The result that it is.
    Other(CallToolResult),
}

/// Reads an answer. `uri` names it if it is neither text nor picture nor sound.
pub(crate) fn read(answer: &Response<Bytes>, plan: &AnswerPlan, uri: &str) -> Answer {
    let (body, media_type) = (answer.body(), media_type(answer.headers()));
    if body.is_empty() {
        return Answer::Other(CallToolResult::new(vec![line(answer.status()).into()]));
    }
    let kind = match media_type.as_deref() {
        Some(media_type) => Media::of(media_type),
        // Some say nothing.
        None if std::str::from_utf8(body).is_ok() => Media::Json,
        None => Media::Binary,
    };
    let result = match (kind, std::str::from_utf8(body)) {
        (Media::Json, Ok(text)) => match serde_json::from_str(text) {
            Ok(value) => return Answer::Json(value),
            Err(_) => self::text(text, plan),
        },
        (Media::Text | Media::Form, Ok(text)) => self::text(text, plan),
        (kind, _) => {
            let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            let block = match kind {
                Media::Image => ContentBlock::Image(ImageContent::new(STANDARD.encode(body), media_type)),
                Media::Audio => ContentBlock::Audio(AudioContent::new(STANDARD.encode(body), media_type)),
                _ => Embedded::bytes(uri, body).mime_type(media_type).into(),
            };
            CallToolResult::new(vec![block])
        }
    };
    Answer::Other(result)
}

/// Returns an answer as the contents of a resource.
pub(crate) fn contents(answer: &Response<Bytes>, plan: &AnswerPlan, uri: &str) -> ResourceContents {
    let (body, media_type) = (answer.body(), media_type(answer.headers()));
    let is_text = media_type
        .as_deref()
        .map(Media::of)
        .is_none_or(|kind| matches!(kind, Media::Json | Media::Form | Media::Text));
    let mut contents = match std::str::from_utf8(body) {
        Ok(text) if is_text => match (&plan.fields, serde_json::from_str::<Value>(text)) {
            (Some(fields), Ok(mut value)) => {
                fields.project(&mut value);
                ResourceContents::text(uri, value.to_string())
            }
            _ => ResourceContents::text(uri, text),
        },
        _ => ResourceContents::blob(uri, STANDARD.encode(body)),
    };
    contents.mime_type = media_type;
    contents
}

/// Returns a result of texts, of which all but the first are notes.
fn noted(text: &str, notes: Vec<String>) -> CallToolResult {
    let notes = notes.into_iter().map(|note| ContentBlock::text(format!("note: {note}")));
    CallToolResult::new([ContentBlock::text(text)].into_iter().chain(notes).collect())
}

fn text(text: &str, plan: &AnswerPlan) -> CallToolResult {
    let (text, note) = cut::text(text, plan.max_result);
    noted(text, note.map(|note| format!("{note}; {LESS}")).into_iter().collect())
}

/// Returns the result of an answer in JSON. `pages` tells where the next ones are.
pub(crate) fn structured(mut value: Value, plan: &AnswerPlan, pages: Vec<String>) -> CallToolResult {
    let output = plan.output.as_ref();
    let mut notes: Vec<String> = plan.fields.iter().filter_map(|fields| fields.project(&mut value)).collect();
    if let Some(faults) = output.and_then(|output| output.faults(&value)) {
        tracing::warn!(%faults, "an answer does not match the output schema of its tool");
        notes.push(format!("the answer is not what the API describes: {faults}"));
    }
    if let Some(note) = cut::value(&mut value, plan.max_result) {
        notes.push(match &plan.page_size {
            Some(size) => format!("{note}; ask for fewer at a time with `{size}` to get the rest"),
            None => format!("{note}; {LESS}"),
        });
    }
    notes.extend(pages);
    let mut result = noted(&value.to_string(), notes);
    let is_wrapped = output.is_some_and(|output| output.is_wrapped);
    let value = if is_wrapped { json!({ "result": value }) } else { value };
    // Others than objects are not structured content in every revision.
    result.structured_content = Some(value).filter(Value::is_object);
    result
}

/// Returns the result of a call that the API refused. `hint` is what to do if that is for a lack of credentials.
pub(crate) fn failure(answer: &Response<Bytes>, hint: Option<&str>) -> String {
    let (status, headers) = (answer.status(), answer.headers());
    let mut text = line(status);
    let shown = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    if let Some(to) = shown(LOCATION).filter(|_| status.is_redirection()) {
        // A query may have a secret.
        let to: String = to.split(['?', '#']).next().unwrap_or_default().chars().take(200).collect();
        text += &format!("\nit redirects to `{to}`, which is not followed");
    }
    if let Some(wait) = shown(RETRY_AFTER) {
        text += &format!("\ntry again after {} seconds", wait.chars().take(64).collect::<String>());
    }
    if let Some(hint) = hint.filter(|_| matches!(status.as_u16(), 401 | 403)) {
        text += &format!("\n{hint}");
    }
    let media_type = media_type(headers).unwrap_or_default();
    let is_text = matches!(Media::of(&media_type), Media::Json | Media::Text) || media_type.is_empty();
    let is_page = media_type.starts_with("text/html") || answer.body().trim_ascii_start().starts_with(b"<!");
    if let Ok(body) = std::str::from_utf8(answer.body())
        && is_text
        && !is_page
        && !body.trim().is_empty()
    {
        text += "\n";
        text.extend(body.trim().chars().take(SHOWN));
        if body.trim().chars().nth(SHOWN).is_some() {
            text.push('…');
        }
    }
    text
}

fn line(status: StatusCode) -> String {
    format!("HTTP {} {}", status.as_u16(), status.canonical_reason().unwrap_or_default())
        .trim_end()
        .to_owned()
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    Some(essence(headers.get(CONTENT_TYPE)?.to_str().ok()?)).filter(|essence| !essence.is_empty())
}
