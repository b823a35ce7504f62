//! Results of tools that are larger than a limit.

use pintle_proto::server::Body;
use pintle_types::{RawObject, RawValue};
use serde_json::{Value, json, value::to_raw_value};

use super::result_limit::ResultLimit;
use crate::server::Cx;

/// The bytes of a text block without its text.
const TEXT_BLOCK: usize = r#"{"type":"text","text":""}"#.len();

/// Returns the result of a tool, cut if its content exceeds the limit. The rest is kept for the caller, and linked.
pub(super) fn limited(limit: &ResultLimit, cx: &Cx, result: Body) -> Body {
    if result.as_str().len() <= limit.bytes {
        return result;
    }
    match cut(limit, cx, &result) {
        Ok(cut) => cut.into(),
        // It is no result of a tool.
        Err(_) => result,
    }
}

/// Returns a task, whose result is cut if its content exceeds the limit.
pub(super) fn limited_task(limit: &ResultLimit, cx: &Cx, task: Body) -> Body {
    if task.as_str().len() <= limit.bytes {
        return task;
    }
    let result: Option<RawObject> = task.decode_member("result").ok().flatten();
    let cut = result.and_then(|result| to_raw_value::<RawObject>(&limited(limit, cx, result.into())).ok());
    match cut {
        Some(result) => task.with("result", &result).into(),
        None => task,
    }
}

fn cut(limit: &ResultLimit, cx: &Cx, result: &RawObject) -> Result<RawObject, serde_json::Error> {
    let blocks: Vec<RawObject> = result.decode_member("content")?.unwrap_or_default();
    let structured = result.get("structuredContent");
    let mut inline: Vec<Box<RawValue>> = Vec::new();
    let mut whole: Vec<Value> = Vec::new();
    let mut left = limit.bytes;
    for block in &blocks {
        let kind: Option<String> = block.decode_member("type")?;
        let fits = block.as_str().len() <= left;
        let mut shown = if fits { Some(to_raw_value(block)?) } else { None };
        match kind.as_deref() {
            Some("text") => {
                let text: String = block.decode_member("text")?.unwrap_or_default();
                if !fits {
                    let piece = beginning(&text, left.saturating_sub(TEXT_BLOCK));
                    shown = (!piece.is_empty())
                        .then(|| to_raw_value(&json!({"type": "text", "text": piece})))
                        .transpose()?;
                    left = 0;
                }
                if structured != Some(text.as_str()) {
                    whole.push(json!({"mimeType": "text/plain", "text": text}));
                }
            }
            Some("image" | "audio") => {
                let mime: Option<String> = block.decode_member("mimeType")?;
                let blob: Option<String> = block.decode_member("data")?;
                whole.push(json!({"mimeType": mime, "blob": blob}));
            }
            // Resources have their own URIs, and gates judge whether they are linked: they are not a part of what is kept.
            Some("resource") if !fits => {
                let resource: RawObject = block.decode_member("resource")?.unwrap_or_default();
                if let Some(uri) = resource.decode_member::<String>("uri")? {
                    let link = to_raw_value(&json!({"type": "resource_link", "uri": uri, "name": uri}))?;
                    shown = Some(link).filter(|link| link.get().len() <= left);
                }
            }
            _ => {}
        }
        if let Some(shown) = shown {
            left = left.saturating_sub(shown.get().len() + 1);
            inline.push(shown);
        }
    }
    if let Some(structured) = structured {
        whole.push(json!({"mimeType": "application/json", "text": structured}));
    }
    let bytes = result.as_str().len();
    inline.extend(note(limit, cx, bytes, whole)?);
    let mut others = result.without(&["content", "structuredContent"]);
    if others.as_str().len() > limit.bytes {
        let names: Vec<String> = others.iter().map(|(name, _)| name.to_owned()).collect();
        let dropped =
            names.iter().map(String::as_str).filter(|name| !["isError", "resultType"].contains(name));
        others = others.without(&dropped.collect::<Vec<_>>());
    }
    Ok(others.with("content", &to_raw_value(&inline)?))
}

/// Returns the blocks that say what was cut, and where the whole is.
fn note(
    limit: &ResultLimit,
    cx: &Cx,
    bytes: usize,
    mut whole: Vec<Value>,
) -> Result<Vec<Box<RawValue>>, serde_json::Error> {
    let uri = limit.keep(cx, |uri| {
        whole.iter_mut().for_each(|content| content["uri"] = uri.into());
        serde_json::to_string(&whole).ok()
    });
    let text = |text: String| to_raw_value(&json!({"type": "text", "text": text}));
    let cut = format!("[The result has {bytes} bytes and was cut to {}.", limit.bytes);
    Ok(match uri {
        None => {
            let max = limit.caller_bytes;
            vec![text(format!(
                "{cut} The rest is lost, because at most {max} bytes are kept: ask for less.]"
            ))?]
        }
        Some(uri) => {
            let seconds = limit.lifetime.as_secs();
            let link = json!({"type": "resource_link", "uri": uri, "name": "the whole result",
                "description": format!("The result before it was cut. It is kept for {seconds} seconds."), "size": bytes});
            vec![
                // Without the URI: a mount may give it a prefix, and does so in links.
                text(format!("{cut} The whole is linked here, and can be read for {seconds} seconds.]"))?,
                to_raw_value(&link)?,
            ]
        }
    })
}

/// Returns as much of the beginning of a text as has so many bytes in JSON.
fn beginning(text: &str, bytes: usize) -> &str {
    let mut left = bytes;
    let end = text.char_indices().find_map(|(at, letter)| {
        let printed = match letter {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            letter => letter.len_utf8(),
        };
        match left.checked_sub(printed) {
            Some(rest) => {
                left = rest;
                None
            }
            None => Some(at),
        }
    });
    end.map_or(text, |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_two_characters() {
        for (text, bytes, expected) in [
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("aä", 2, "a"),
            ("aä", 3, "aä"),
            ("😀b", 3, ""),
            ("😀b", 4, "😀"),
            ("\"\n\u{1}", 4, "\"\n"),
            ("\u{1}\u{1}", 11, "\u{1}"),
            ("abc", 0, ""),
        ] {
            let cut = beginning(text, bytes);
            assert_eq!(cut, expected);
            assert!(serde_json::to_string(cut).unwrap().len() - 2 <= bytes, "{text:?}");
        }
    }
}
