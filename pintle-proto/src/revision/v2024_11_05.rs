//! Down from the revision that brought audio, tool annotations and the `completions` capability.

use pintle_types::method;
use serde_json::Value;

use super::{
    Part, Unsayable,
    step::{NOTHING, Step},
    walk::{self, Object},
};

pub(super) const STEP: Step = Step { lower, raise, lowers, raises };

fn lower(part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
    let Value::Object(payload) = value else { return Ok(()) };
    match part {
        Part::Result(method::TOOLS_LIST) => walk::listed(part, payload).for_each(tool),
        Part::Result(method::INITIALIZE) => {
            if let Some(capabilities) = walk::object(payload, "capabilities") {
                capabilities.shift_remove("completions");
            }
        }
        Part::Params(method::NOTIFICATIONS_PROGRESS) => {
            payload.shift_remove("message");
        }
        _ => {}
    }
    walk::blocks(part, payload, |block| {
        if walk::is(block, "audio") {
            let text = audio_in_words(block);
            walk::become_text(block, text);
        }
    });
    Ok(())
}

fn lowers(part: Part<'_>) -> &'static [&'static str] {
    match part {
        Part::Result(method::TOOLS_CALL | method::PROMPTS_GET | method::SAMPLING_CREATE_MESSAGE) => {
            &["audio"]
        }
        Part::Params(method::SAMPLING_CREATE_MESSAGE) => &["audio"],
        Part::Result(method::TOOLS_LIST) => &["annotations"],
        Part::Result(method::INITIALIZE) => &["completions"],
        Part::Params(method::NOTIFICATIONS_PROGRESS) => &["message"],
        _ => NOTHING,
    }
}

/// Nothing is made up: a server of this revision that completes does not say so, and a tool without hints has none.
fn raise(_: Part<'_>, _: &mut Value) {}

fn raises(_: Part<'_>) -> &'static [&'static str] {
    NOTHING
}

/// The title is the one annotation that a person would miss.
fn tool(tool: &mut Object) {
    let Some(Value::Object(mut annotations)) = tool.shift_remove("annotations") else { return };
    if let Some(title) = annotations.shift_remove("title") {
        tool.entry("description").or_insert(title);
    }
}

fn audio_in_words(audio: &Object) -> String {
    let kind = walk::string(audio, "mimeType").unwrap_or("audio");
    let bytes = walk::string(audio, "data").map_or(0, |base64| base64.len() / 4 * 3);
    format!("[audio left out: `{kind}`, about {bytes} bytes; the connected client cannot receive audio]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lowered(part: Part<'_>, mut value: Value) -> Value {
        assert_eq!(lower(part, &mut value), Ok(()));
        value
    }

    #[test]
    fn audio_becomes_a_note() {
        let audio = json!({"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav",
            "annotations": {"audience": ["user"]}});
        let note = json!({"type": "text", "annotations": {"audience": ["user"]},
            "text": "[audio left out: `audio/wav`, about 6 bytes; the connected client cannot receive audio]"});
        assert_eq!(
            lowered(Part::Result("tools/call"), json!({"content": [audio]})),
            json!({"content": [note]})
        );
        for part in [Part::Result("prompts/get"), Part::Params("sampling/createMessage")] {
            assert_eq!(
                lowered(part, json!({"messages": [{"role": "user", "content": audio}]})),
                json!({"messages": [{"role": "user", "content": note}]})
            );
        }
        assert_eq!(
            lowered(Part::Result("sampling/createMessage"), json!({"content": audio})),
            json!({"content": note})
        );
    }

    #[test]
    fn annotations_leave_the_title_behind() {
        assert_eq!(
            lowered(
                Part::Result("tools/list"),
                json!({"tools": [
                    {"name": "a", "annotations": {"title": "A", "readOnlyHint": true}},
                    {"name": "b", "annotations": {"title": "B"}, "description": "does b"},
                ]})
            ),
            json!({"tools": [{"name": "a", "description": "A"}, {"name": "b", "description": "does b"}]})
        );
    }

    #[test]
    fn progress_and_completions() {
        assert_eq!(
            lowered(
                Part::Params("notifications/progress"),
                json!({"progressToken": 1, "progress": 2, "message": "going"})
            ),
            json!({"progressToken": 1, "progress": 2})
        );
        assert_eq!(
            lowered(Part::Result("initialize"), json!({"capabilities": {"completions": {}, "tools": {}}})),
            json!({"capabilities": {"tools": {}}})
        );
    }
}
