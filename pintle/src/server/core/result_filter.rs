//! Results and questions without what their caller does not see. They are recognized by their shapes, in the result of any method.

use std::{borrow::Cow, fmt, mem};

use pintle_proto::server::{Body, Outcome};
use pintle_types::{
    RawObject, RawValue, RpcError, method,
    schema::{CacheScope, CompleteParams, CompletionReference},
};
use pintle_uri::{Template, UriLimits, Values};
use serde::{
    Deserialize, Deserializer as _,
    de::{SeqAccess, Visitor},
};
use serde_json::{json, value::to_raw_value};

use super::{
    snapshot::Snapshot,
    unread_lists::{UnreadLists, once_read},
};
use crate::server::Cx;

/// The limit of links of one result that are judged. Further ones are removed.
const MAX_LINKS: usize = 5_000;
/// The depth to which content is looked for in content.
const MAX_DEPTH: u8 = 8;
/// The `cacheScope` of a result for one caller.
const PRIVATE: &str = "\"private\"";

/// Makes the outcome of a request one for its caller alone: no cache may share it, and nothing in it leads to what is hidden.
pub(crate) async fn finish(cx: &Cx, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Complete(body) => match filtered(cx, body).await {
            Ok((body, _)) => Outcome::Complete(body),
            Err(unknown) => Outcome::Failed(unknown),
        },
        Outcome::Cacheable(body, mut hint) => match filtered(cx, body).await {
            Ok((body, is_private)) => {
                if is_private {
                    hint.scope = CacheScope::Private;
                }
                Outcome::Cacheable(body, hint)
            }
            Err(unknown) => Outcome::Failed(unknown),
        },
        Outcome::Relayed(mut round) => {
            if let (Some(result), _) = shown_part(cx, &round.result).await {
                round.result = result;
            }
            Outcome::Relayed(round)
        }
        other => other,
    }
}

/// Returns a result without what is hidden, and whether it is for this caller alone.
///
/// # Errors
///
/// All of it is hidden.
async fn filtered(cx: &Cx, body: Body) -> Result<(Body, bool), RpcError> {
    let is_gated = cx.snapshot().is_gated();
    let (rest, is_hidden) = match body {
        // It has no links.
        Body::Text(_) => (None, false),
        _ => shown_part(cx, &body).await,
    };
    if is_hidden {
        let uri: Option<String> = cx.params().decode_member("uri").ok().flatten();
        if body.get("skill").is_some() {
            return Err(unknown("skill", &uri.unwrap_or_default()));
        }
        if let Some(uri) = uri {
            return Err(unknown("directory", &uri));
        }
    }
    let is_private = is_gated || rest.is_some();
    let body = rest.map_or(body, Into::into);
    let is_shared = is_private && body.get("cacheScope").is_some_and(|scope| scope != PRIVATE);
    let body = match RawValue::from_string(PRIVATE.to_owned()) {
        Ok(scope) if is_shared => body.with("cacheScope", &scope).into(),
        _ => body,
    };
    Ok((body, is_private))
}

/// Returns the error of a request for a skill or a directory that does not exist, as `Skills` words it.
fn unknown(what: &str, uri: &str) -> RpcError {
    let shown: String = uri.chars().take(256).collect();
    RpcError::invalid_params(format!("no such {what}: `{shown}`; list them first"))
}

/// Returns a result without what is hidden, or `None` if nothing is, and whether the result itself is of something that is. Each server
/// that it passes on its way out has its own filter.
async fn shown_part(cx: &Cx, result: &RawObject) -> (Option<RawObject>, bool) {
    let server = &**cx.snapshot();
    let completed = (cx.method() == method::COMPLETION_COMPLETE).then(|| completed(cx));
    let filtered = |unread: &mut UnreadLists| {
        let mut filter = Filter::new(|uri: &str| server.hides_link(&cx.scope(), uri, 0, unread));
        let rest = match &completed {
            Some(template) => filter.completion(result, template),
            None => filter.object(result, ObjectShape::Result, 0),
        };
        (rest, filter.is_hidden)
    };
    once_read(cx, &[server], filtered).await
}

/// Returns the params of a question without what is hidden; `None` if nothing is. A question goes to the client at once.
pub(crate) async fn question(cx: &Cx, params: &RawObject) -> Option<RawObject> {
    let servers: Vec<&Snapshot> = servers(cx).collect();
    if !servers.iter().any(|server| server.hides()) {
        return None;
    }
    let filtered = |unread: &mut UnreadLists| {
        let numbered = servers.iter().enumerate();
        let hides =
            |uri: &str| numbered.clone().any(|(at, server)| server.hides_link(&cx.scope(), uri, at, unread));
        Filter::new(hides).object(params, ObjectShape::Result, 0)
    };
    once_read(cx, &servers, filtered).await
}

/// Returns the server that handles a call, and those that it is mounted in.
fn servers(cx: &Cx) -> impl Iterator<Item = &Snapshot> {
    std::iter::once(&**cx.snapshot()).chain(cx.mounts().map(|(_, outer)| outer))
}

/// Returns the template whose variable a request completes, with the name of the variable and the values of the others. Of those that are
/// not known yet, any will do: what is hidden with each of them is named by none.
fn completed(cx: &Cx) -> Option<(Template, String, Values)> {
    let CompleteParams { reference, argument, context, .. } = cx.params().decode().ok()?;
    let CompletionReference::Resource(resource) = reference else { return None };
    let template = Template::parse(&resource.uri).ok()?;
    let known = context.and_then(|context| context.arguments).unwrap_or_default();
    let values = template.names().fold(Values::new(), |values, name| {
        // A value that makes the URI too long is repeated no further than that.
        let value = known.get(name).map_or("x", String::as_str);
        values.set(name, value.chars().take(UriLimits::READ.bytes + 1).collect::<String>())
    });
    Some((template, argument.name, values))
}

/// The shape of an object.
#[derive(Clone, Copy)]
enum ObjectShape {
    /// A result, or the params of a question.
    Result,
    /// Questions by key.
    Questions,
    /// A question: its method and its params.
    Question,
}

/// The text in the place of links that were not judged.
#[derive(Clone, Copy)]
enum ClosingText {
    /// Nothing: whatever is around the list says so, or its items are no texts.
    Nothing,
    Block,
    Message,
    Contents,
}

/// The verdict about an item of a list.
enum Verdict {
    Keep,
    Remove,
    Replace(String),
}

/// A pass over the text of a result. Of lists of content, one item at a time is looked at.
struct Filter<H> {
    /// Returns whether a resource is hidden.
    hides: H,
    /// The number of links that were judged.
    judged: usize,
    /// The number of items that were looked at.
    steps: usize,
    /// The number of links that were removed and not judged, since a text has said so.
    cut: usize,
    /// Whether the result itself is of something that is hidden.
    is_hidden: bool,
}

/// The members of an item of a list that may lead elsewhere. One that is there twice has two meanings, and is an error.
#[derive(Deserialize)]
struct LinkedItem<'a> {
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
}

impl<H: FnMut(&str) -> bool> Filter<H> {
    fn new(hides: H) -> Self {
        Self { hides, judged: 0, steps: 0, cut: 0, is_hidden: false }
    }

    /// Returns an object without what is hidden; `None` if nothing is.
    fn object(&mut self, object: &RawObject, shape: ObjectShape, depth: u8) -> Option<RawObject> {
        if !may_link(object.as_str()) {
            return None;
        }
        let mut rest: Option<RawObject> = None;
        for (name, value) in object.iter() {
            let changed = match (shape, name) {
                (ObjectShape::Result, "content") => self.content(value, ClosingText::Block, depth),
                (ObjectShape::Result, "messages") => self.array(value, ClosingText::Message, depth),
                (ObjectShape::Result, "contents") => self.array(value, ClosingText::Contents, depth),
                (ObjectShape::Result, "skills") => self.array(value, ClosingText::Nothing, depth),
                (ObjectShape::Result, "resources") => {
                    let changed = self.array(value, ClosingText::Nothing, depth);
                    self.is_hidden |= changed.as_deref() == Some("[]") && object.get("nextCursor").is_none();
                    changed
                }
                (ObjectShape::Result, "skill") => match self.item(value, depth) {
                    Verdict::Keep => None,
                    Verdict::Replace(text) => Some(text),
                    Verdict::Remove => {
                        self.is_hidden = true;
                        None
                    }
                },
                (ObjectShape::Result, "result") | (ObjectShape::Question, "params") => {
                    self.nested(value, ObjectShape::Result, depth)
                }
                (ObjectShape::Result, "inputRequests") => self.nested(value, ObjectShape::Questions, depth),
                (ObjectShape::Questions, _) => self.nested(value, ObjectShape::Question, depth),
                _ => None,
            };
            if let Some(value) = changed.and_then(|text| RawValue::from_string(text).ok()) {
                rest = Some(rest.as_ref().unwrap_or(object).with(name, &value));
            }
        }
        rest
    }

    /// Filters an object within another one. One that has two meanings, or is too deep, is not sent.
    fn nested(&mut self, text: &str, shape: ObjectShape, depth: u8) -> Option<String> {
        if !text.starts_with('{') || !may_link(text) {
            return None;
        }
        match text.parse::<RawObject>() {
            Ok(object) if depth < MAX_DEPTH => {
                self.object(&object, shape, depth + 1).map(RawObject::into_string)
            }
            _ => Some("{}".to_owned()),
        }
    }

    /// Filters content that is a list, or one block: the block of a result is replaced by an empty text.
    fn content(&mut self, text: &str, closing: ClosingText, depth: u8) -> Option<String> {
        if text.starts_with('[') {
            return self.array(text, closing, depth);
        }
        match self.item(text, depth) {
            Verdict::Keep => None,
            Verdict::Replace(text) => Some(text),
            Verdict::Remove => Some(json!({"type": "text", "text": ""}).to_string()),
        }
    }

    /// Filters a list. Returns `None` if it stays as it is.
    fn array(&mut self, text: &str, closing: ClosingText, depth: u8) -> Option<String> {
        if !text.starts_with('[') || !may_link(text) {
            return None;
        }
        let mut rest: Option<String> = None;
        let read = serde_json::Deserializer::from_str(text).deserialize_seq(Each(|item: &str| {
            let verdict = self.item(item, depth);
            if rest.is_none() && matches!(verdict, Verdict::Keep) {
                return;
            }
            let at = item.as_ptr().addr() - text.as_ptr().addr();
            let rest = rest.get_or_insert_with(|| {
                let before = text.get(..at).unwrap_or("[").trim_end();
                before.strip_suffix(',').unwrap_or(before).to_owned()
            });
            let kept = match &verdict {
                Verdict::Keep => item,
                Verdict::Replace(item) => item,
                Verdict::Remove => return,
            };
            push(rest, kept);
        }));
        if read.is_err() {
            return Some("[]".to_owned());
        }
        let mut rest = rest?;
        if self.cut > 0 && !matches!(closing, ClosingText::Nothing) {
            let cut = mem::take(&mut self.cut);
            let text = format!(
                "{cut} links were left out: at most {MAX_LINKS} of one result are checked, so ask for a part of it"
            );
            let block = match closing {
                ClosingText::Contents => json!({"uri": "about:blank", "text": text}),
                _ => json!({"type": "text", "text": text}),
            };
            let is_message = matches!(closing, ClosingText::Message);
            let item = if is_message { json!({"role": "user", "content": block}) } else { block };
            push(&mut rest, &item.to_string());
        }
        rest.push(']');
        Some(rest)
    }

    /// Judges an item of a list: a block of content, a message, the contents of a resource, a skill, or an entry of a directory.
    fn item(&mut self, text: &str, depth: u8) -> Verdict {
        self.steps += 1;
        if !text.starts_with('{') || !may_link(text) {
            return Verdict::Keep;
        }
        let Ok(item) = serde_json::from_str::<LinkedItem<'_>>(text) else { return Verdict::Remove };
        let inner = item.resource.map(|resource| serde_json::from_str::<LinkedItem<'_>>(resource.get()));
        let inner = match inner.transpose() {
            Ok(inner) => inner.and_then(|inner| inner.uri),
            Err(_) => return Verdict::Remove,
        };
        if [item.uri, inner].into_iter().flatten().any(|uri| self.leads_to_hidden(uri)) {
            return Verdict::Remove;
        }
        for (name, value) in [("content", item.content), ("resources", item.resources)] {
            let Some(value) = value.map(RawValue::get).filter(|value| may_link(value)) else { continue };
            if depth == MAX_DEPTH {
                return Verdict::Remove;
            }
            let changed = match value.starts_with('[') {
                true => self.array(value, ClosingText::Nothing, depth + 1),
                // A message has the block.
                false => match self.item(value, depth + 1) {
                    Verdict::Keep => None,
                    Verdict::Replace(text) => Some(text),
                    Verdict::Remove => return Verdict::Remove,
                },
            };
            if let Some(changed) = changed.and_then(|text| RawValue::from_string(text).ok()) {
                // A list of blocks or of files: an item has one of them.
                return match text.parse::<RawObject>() {
                    Ok(object) => Verdict::Replace(object.with(name, &changed).into_string()),
                    Err(_) => Verdict::Remove,
                };
            }
        }
        Verdict::Keep
    }

    fn leads_to_hidden(&mut self, uri: &RawValue) -> bool {
        if self.judged == MAX_LINKS {
            self.cut += 1;
            return true;
        }
        self.judged += 1;
        // What is not text leads nowhere.
        serde_json::from_str::<Cow<'_, str>>(uri.get()).map_or(true, |uri| (self.hides)(&uri))
    }

    /// Filters the values of a completion: those that are URIs of hidden resources, and those with which a template is one.
    fn completion(
        &mut self,
        body: &RawObject,
        template: &Option<(Template, String, Values)>,
    ) -> Option<RawObject> {
        let completion = body.object_member("completion").ok()??;
        let mut values: Vec<String> = completion.decode_member("values").ok()??;
        let count = values.len();
        values.retain(|value| {
            self.steps += 1;
            if self.judged == MAX_LINKS {
                return false;
            }
            self.judged += 1;
            let expanded = template
                .as_ref()
                .map(|(template, name, values)| template.expand(&values.clone().set(name, value.as_str())));
            !(self.hides)(value) && !expanded.is_some_and(|uri| (self.hides)(&uri))
        });
        if values.len() == count {
            return None;
        }
        // The number of all values counts hidden ones.
        let completion = completion.without(&["total"]).with("values", &to_raw_value(&values).ok()?);
        Some(body.with_object("completion", &completion))
    }
}

/// Returns whether a text may have a member `uri`. Its name may be written with escapes.
fn may_link(text: &str) -> bool {
    text.contains("\"uri\"") || text.contains("\\u00")
}

/// Adds an item to a list that is not closed yet.
fn push(list: &mut String, item: &str) {
    if !list.ends_with('[') {
        list.push(',');
    }
    list.push_str(item);
}

/// A visitor of each item of a list, as text.
struct Each<F>(F);

impl<'de, F: FnMut(&'de str)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            (self.0)(item.get());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> (String, usize, usize) {
        let mut filter = Filter::new(|uri: &str| uri.contains("secret"));
        let body: RawObject = text.parse().unwrap();
        let rest = filter.object(&body, ObjectShape::Result, 0);
        (rest.unwrap_or(body).into_string(), filter.judged, filter.steps)
    }

    #[test]
    fn every_shape_that_carries_content_is_filtered() {
        let link = r#"{"type":"resource_link","uri":"secret://r","name":"a"}"#;
        let embedded = r#"{"type":"resource","resource":{"uri":"secret://t/1","text":"in"}}"#;
        let open = r#"{"type":"resource_link","uri":"open://r","name":"b"}"#;
        for (text, expected) in [
            (format!(r#"{{"content":[{open},{link}]}}"#), format!(r#"{{"content":[{open}]}}"#)),
            (format!(r#"{{"content":[ {embedded} , {open} ]}}"#), format!(r#"{{"content":[{open}]}}"#)),
            (
                format!(r#"{{"messages":[{{"role":"user","content":{link}}}]}}"#),
                r#"{"messages":[]}"#.to_owned(),
            ),
            (
                format!(r#"{{"messages":[{{"role":"user","content":[{link},{open}]}}]}}"#),
                format!(r#"{{"messages":[{{"role":"user","content":[{open}]}}]}}"#),
            ),
            (
                format!(r#"{{"content":[{{"type":"tool_result","content":[{link}]}}]}}"#),
                r#"{"content":[{"type":"tool_result","content":[]}]}"#.to_owned(),
            ),
            (
                format!(r#"{{"taskId":"1","result":{{"content":[{link}],"isError":false}}}}"#),
                r#"{"taskId":"1","result":{"content":[],"isError":false}}"#.to_owned(),
            ),
            (
                format!(
                    r#"{{"inputRequests":{{"k":{{"method":"sampling/createMessage","params":{{"messages":[{{"role":"user","content":{embedded}}}]}}}}}}}}"#
                ),
                r#"{"inputRequests":{"k":{"method":"sampling/createMessage","params":{"messages":[]}}}}"#.to_owned(),
            ),
            (
                r#"{"contents":[{"uri":"open://r","text":"1"},{"uri":"secret://r","text":"2"}]}"#.to_owned(),
                r#"{"contents":[{"uri":"open://r","text":"1"}]}"#.to_owned(),
            ),
            (
                r#"{"skills":[{"uri":"secret://a/SKILL.md"},{"uri":"open://a/SKILL.md","resources":[{"uri":"secret://b"}]}]}"#.to_owned(),
                r#"{"skills":[{"uri":"open://a/SKILL.md","resources":[]}]}"#.to_owned(),
            ),
            // Two readers would see two links, or see none where the other sees one.
            (
                r#"{"content":[{"uri":"open://r","uri":"secret://r"},{"\u0075ri":"secret:\/\/r"},{"uri":["secret"]}]}"#.to_owned(),
                r#"{"content":[]}"#.to_owned(),
            ),
            (r#"{"result":{"content":[],"content":[{"uri":"secret://r"}]}}"#.to_owned(), r#"{"result":{}}"#.to_owned()),
        ] {
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(&run(&text).0), value(&expected), "{text}");
        }
    }

    #[test]
    fn content_is_looked_for_to_a_depth() {
        let mut block = r#"{"uri":"secret://r"}"#.to_owned();
        for _ in 0..100 {
            block = format!(r#"{{"content":[{block}]}}"#);
        }
        let (rest, _, steps) = run(&format!(r#"{{"content":[{block}]}}"#));
        assert!(!rest.contains("secret") && steps <= usize::from(MAX_DEPTH) + 1, "{steps} {rest}");
    }

    #[test]
    fn links_beyond_the_limit_are_left_out_with_a_text_that_says_how_many() {
        let mut steps_before = 0;
        for count in [4_000, 8_000, 16_000] {
            let link = |at: usize| format!(r#"{{"type":"resource_link","uri":"open://{at}","name":"n"}}"#);
            let links: Vec<_> = (0..count).map(link).collect();
            let (rest, judged, steps) = run(&format!(r#"{{"content":[{}]}}"#, links.join(",")));
            assert_eq!(judged, count.min(MAX_LINKS));
            assert!(steps <= steps_before * 2 + count, "{steps} for {count} links");
            steps_before = count;
            let says = format!("{} links were left out", count.saturating_sub(MAX_LINKS));
            assert_eq!(rest.contains(&says), count > MAX_LINKS);
            assert_eq!(rest.matches("resource_link").count(), count.min(MAX_LINKS));
        }
    }
}
