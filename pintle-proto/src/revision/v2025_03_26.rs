//! Changes in 2025-03-26: audio, tool annotations, progress messages and the `completions` capability.

use pintle_types::method;
use serde_json::Value;

use super::{
    Unsayable,
    edits::{Edit, Object, On, Rule, Step},
    walk,
};

pub(super) const STEP: Step = Step {
    down: &[
        Rule(
            On::ResultOf(&[method::TOOLS_LIST]),
            &[Edit::Within(&["tools"], &[Edit::Having("annotations", &[Edit::Map(no_annotations)])])],
        ),
        Rule(
            On::ResultOf(&[method::INITIALIZE]),
            &[Edit::Within(&["capabilities"], &[Edit::Drop("completions")])],
        ),
        Rule(On::ParamsOf(&[method::NOTIFICATIONS_PROGRESS]), &[Edit::Drop("message")]),
        Rule(
            On::ResultOf(&[method::TOOLS_CALL, method::SAMPLING_CREATE_MESSAGE]),
            &[Edit::Within(&["content"], NO_AUDIO)],
        ),
        Rule(On::ResultOf(&[method::PROMPTS_GET]), &[Edit::Within(&["messages", "content"], NO_AUDIO)]),
        Rule(
            On::ParamsOf(&[method::SAMPLING_CREATE_MESSAGE]),
            &[Edit::Within(&["messages", "content"], NO_AUDIO)],
        ),
    ],
    // Nothing is added: a server of 2024-11-05 does not declare completions, and a tool without hints has none.
    up: &[],
};

const NO_AUDIO: &[Edit] = &[Edit::OfKind("audio", &[Edit::Map(audio_to_text)])];

/// Drops the annotations of a tool, except the title, which becomes the description if there is none.
fn no_annotations(tool: &mut Object) -> Result<(), Unsayable> {
    if let Some(Value::Object(mut annotations)) = tool.shift_remove("annotations")
        && let Some(title) = annotations.shift_remove("title")
    {
        tool.entry("description").or_insert(title);
    }
    Ok(())
}

fn audio_to_text(block: &mut Object) -> Result<(), Unsayable> {
    let text = audio_in_words(block);
    walk::become_text(block, text);
    Ok(())
}

fn audio_in_words(audio: &Object) -> String {
    let kind = walk::string(audio, "mimeType").unwrap_or("audio");
    let bytes = walk::string(audio, "data").map_or(0, |base64| base64.len() / 4 * 3);
    format!("[audio left out: `{kind}`, about {bytes} bytes; the connected client cannot receive audio]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{Part, edits::apply},
        *,
    };

    fn lower(part: Part<'_>, value: &mut Value) -> Result<(), Unsayable> {
        apply(STEP.down, part, value)
    }

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
