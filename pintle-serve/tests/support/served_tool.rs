//! A value in the places of a command, of a line for a shell and of a request.

use std::{collections::BTreeMap, path::Path, sync::OnceLock};

use pintle::types::JsonObject;
use pintle_serve::{CallPlan, ServedTools, ToolEntry};
use serde_json::json;

const MAX_WORD: usize = 128 << 10;

fn tools() -> &'static ServedTools {
    static TOOLS: OnceLock<ServedTools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let arguments = json!({"v": "string"});
        let entries = json!({
            "words": {"command": ["echo", "{v}", "--", "x{v}y"], "arguments": arguments},
            "line": {"command": "echo {v} \"is {v}\"", "shell": true, "arguments": arguments},
            "request": {"request": {"url": "https://h.example/a/{v}/b?q={v}"}, "arguments": arguments},
        });
        let entries: BTreeMap<String, ToolEntry> = serde_json::from_value(entries).expect("they are entries");
        ServedTools::new(&entries, Path::new(".")).expect("they are tools")
    })
}

/// Returns the plan of a call; `None` if it would be refused.
fn plan(tool: &str, value: &str) -> Option<CallPlan> {
    let arguments = JsonObject::from_iter([("v".to_owned(), json!(value))]);
    tools().plan(tool, &arguments).expect("there is the tool").ok()
}

/// Checks that a value stays in its place, or is refused.
pub(super) fn play(value: &str) {
    let is_word = !value.contains('\0') && value.len() < MAX_WORD / 2;
    match plan("words", value) {
        Some(CallPlan::Command(plan)) => {
            assert_eq!(plan.words, ["echo", value, "--", &format!("x{value}y")]);
        }
        Some(plan) => panic!("{plan:?}"),
        None => assert!(!is_word || value.starts_with('-'), "{value:?}"),
    }
    match (plan("line", value), plan("line", "a")) {
        (Some(CallPlan::Command(plan)), Some(CallPlan::Command(other))) => {
            // The script is the same for every value.
            assert_eq!(plan.words[..4], other.words[..4]);
            assert_eq!(plan.words[4..], [value, value]);
        }
        (plan, _) => assert!(plan.is_none() && (!is_word || value.starts_with('-')), "{value:?}: {plan:?}"),
    }
    if let Some(CallPlan::Request(plan)) = plan("request", value) {
        let rest = plan.url.strip_prefix("https://h.example/a/").expect("the server is fixed");
        let (segment, query) = rest.split_once("/b?q=").expect("the path has three segments");
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"%-._~".contains(&byte));
        assert!(is_plain(segment) && is_plain(query) && segment == query, "{}", plan.url);
        assert!(!["", ".", ".."].contains(&segment), "{}", plan.url);
    }
}
