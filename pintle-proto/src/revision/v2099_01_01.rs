//! A fictional revision, which tests how the next one is added.
//!
//! It is newer than the canonical shapes, stateless, and differs from 2026-07-28 in a renamed member, a reshaped result, an
//! added method, a renamed member of a question, of an answer and of a notification, and another name of `ttlMs`.

use pintle_types::method;
use serde_json::{Value, json};

use super::{
    Unsayable,
    edits::{Edit, Object, On, Rule, Step},
};

/// The method that this revision adds.
pub(super) const ECHO: &str = "server/echo";

pub(super) const STEP: Step = Step {
    down: &[
        Rule(On::ParamsOf(&[method::TOOLS_CALL]), &[Edit::Rename("input", "arguments")]),
        Rule(On::ResultOf(&[method::TOOLS_LIST]), &[Edit::Having("tools", &[Edit::Map(tools_to_list)])]),
        Rule(On::ResultWhere(|row| row.cacheable), &[Edit::Rename("maxAgeMs", "ttlMs")]),
        Rule(On::ParamsOf(&[method::ELICITATION_CREATE]), &[Edit::Rename("prompt", "message")]),
        Rule(On::ResultOf(&[method::ELICITATION_CREATE]), &[Edit::Rename("fields", "content")]),
        Rule(On::ParamsOf(&[method::NOTIFICATIONS_PROGRESS]), &[Edit::Rename("text", "message")]),
        Rule(On::ParamsOf(&[method::NOTIFICATIONS_RESOURCES_UPDATED]), &[Edit::Rename("resource", "uri")]),
    ],
    up: &[
        Rule(On::ParamsOf(&[method::TOOLS_CALL]), &[Edit::Rename("arguments", "input")]),
        Rule(On::ResultOf(&[method::TOOLS_LIST]), &[Edit::Having("tools", &[Edit::Map(tools_by_name)])]),
        Rule(On::ResultWhere(|row| row.cacheable), &[Edit::Rename("ttlMs", "maxAgeMs")]),
        Rule(On::ParamsOf(&[method::ELICITATION_CREATE]), &[Edit::Rename("message", "prompt")]),
        Rule(On::ResultOf(&[method::ELICITATION_CREATE]), &[Edit::Rename("content", "fields")]),
        Rule(On::ParamsOf(&[method::NOTIFICATIONS_PROGRESS]), &[Edit::Rename("message", "text")]),
        Rule(On::ParamsOf(&[method::NOTIFICATIONS_RESOURCES_UPDATED]), &[Edit::Rename("uri", "resource")]),
    ],
};

/// Converts the list of tools to an object by name.
fn tools_by_name(result: &mut Object) -> Result<(), Unsayable> {
    if let Some(Value::Array(tools)) = result.get_mut("tools") {
        let named = tools.iter_mut().filter_map(|tool| {
            let name = tool.as_object_mut()?.shift_remove("name")?;
            Some((name.as_str()?.to_owned(), tool.take()))
        });
        let named: Object = named.collect();
        result.insert("tools".to_owned(), Value::Object(named));
    }
    Ok(())
}

/// Converts the object of tools back to a list.
fn tools_to_list(result: &mut Object) -> Result<(), Unsayable> {
    if let Some(Value::Object(tools)) = result.get_mut("tools") {
        let named = std::mem::take(tools).into_iter().map(|(name, mut tool)| {
            if let Some(tool) = tool.as_object_mut() {
                tool.insert("name".to_owned(), json!(name));
            }
            tool
        });
        let named: Vec<_> = named.collect();
        result.insert("tools".to_owned(), Value::Array(named));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Part, Revision};
    use super::*;

    #[test]
    fn there_and_back() {
        for (part, canonical, next) in [
            (
                Part::Params("tools/call"),
                json!({"name": "add", "arguments": {"a": 1}}),
                json!({"name": "add", "input": {"a": 1}}),
            ),
            (
                Part::Result("tools/list"),
                json!({"tools": [{"name": "a", "inputSchema": {}}], "ttlMs": 5}),
                json!({"tools": {"a": {"inputSchema": {}}}, "maxAgeMs": 5}),
            ),
        ] {
            let text = canonical.to_string();
            assert!(Revision::NEXT.lowers(part, &text));
            assert!(
                !Revision::LATEST.lowers(part, &text) && !Revision::LATEST.raises(part, &next.to_string())
            );
            let mut value = canonical.clone();
            Revision::NEXT.lower(part, &mut value).unwrap();
            assert_eq!(value, next);
            assert!(Revision::NEXT.raises(part, &next.to_string()));
            Revision::NEXT.raise(part, &mut value).unwrap();
            assert_eq!(value, canonical);
        }
    }

    #[test]
    fn nobody_gets_it_unless_they_ask() {
        assert!(Revision::all().all(|revision| revision != Revision::NEXT));
        assert_ne!(Revision::LATEST, Revision::NEXT);
        assert!(Revision::NEXT.as_str().parse::<Revision>().is_err());
    }
}
