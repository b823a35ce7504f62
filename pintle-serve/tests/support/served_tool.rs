//! A value in the places of a command, of a line for a shell and of a request.

use std::{collections::BTreeMap, path::Path, process::Command, sync::OnceLock};

use pintle::types::JsonObject;
use pintle_serve::{CallPlan, ServedTools, ToolEntry};
use serde_json::{Value, json};
use url::Url;

const MAX_WORD: usize = 128 << 10;

fn tools() -> &'static ServedTools {
    static TOOLS: OnceLock<ServedTools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let entries = json!({
            "words": {"command": ["echo", "{v}", "--", "x{v}y"]},
            "line": {"command": "echo {v} \"is {v}\"", "shell": true},
            "request": {"request": {"url": "https://h.example/a/{v}/b?q={v}"}},
            "print": {"command": ["printf", "%s\\n", "x{v}", "{v}"], "flags": true},
        });
        read(&entries).expect("they are tools")
    })
}

/// Returns tools whose argument is `v`; `None` if one is refused.
fn read(entries: &Value) -> Option<ServedTools> {
    let mut entries: BTreeMap<String, ToolEntry> =
        serde_json::from_value(entries.clone()).expect("they are entries");
    for entry in entries.values_mut() {
        entry.arguments = serde_json::from_value(json!({"v": "string"})).expect("it is an argument");
    }
    ServedTools::new(&entries, Path::new(".")).ok()
}

fn with(value: &str) -> JsonObject {
    JsonObject::from_iter([("v".to_owned(), json!(value))])
}

/// Returns the plan of a call; `None` if it would be refused.
fn plan(tool: &str, value: &str) -> Option<CallPlan> {
    tools().plan(tool, &with(value)).expect("there is the tool").ok()
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
        let parsed = Url::parse(&plan.url).expect("another parser reads the URL");
        assert_eq!(parsed.as_str(), plan.url, "and changes nothing");
        assert_eq!(parsed.query_pairs().collect::<Vec<_>>(), [("q".into(), value.into())]);
    }
}

/// Checks that real shells read a printed command as it was meant.
pub(super) fn play_shells(value: &str) {
    let Some(printed) = plan("print", value) else { return };
    for shell in ["/bin/sh", "/bin/bash", "/bin/dash"] {
        // A shell that reads another command finds no program.
        let ran =
            Command::new(shell).args(["-c", &printed.to_string()]).env_clear().env("PATH", "/").output();
        let Ok(ran) = ran else { continue };
        assert_eq!(
            String::from_utf8_lossy(&ran.stdout),
            format!("x{value}\n{value}\n"),
            "{shell}: {printed}"
        );
    }
}

/// Checks that a value stays in the place of any line for a shell, and of any URL.
pub(super) fn play_text(text: &str, value: &str) {
    let line = read(&json!({"t": {"command": text, "shell": true}}));
    if let Some(tools) = line {
        let script = |value: &str| match tools.plan("t", &with(value)).expect("there is the tool") {
            Ok(CallPlan::Command(plan)) => Some(plan.words),
            _ => None,
        };
        if let (Some(one), Some(other)) = (script("a"), script(value)) {
            assert_eq!(one[..4], other[..4], "the script is the same for every value");
            let is_value = |(one, other): (&String, &String)| one == other || (one == "a" && other == value);
            assert!(one.iter().zip(&other).all(is_value) && one.len() == other.len());
        }
    }
    if let Some(tools) = read(&json!({"t": {"request": {"url": text}}})) {
        let url = |value: &str| match tools.plan("t", &with(value)).expect("there is the tool") {
            Ok(CallPlan::Request(plan)) => Some(Url::parse(&plan.url)),
            _ => None,
        };
        // The other parser refuses some names of hosts, such as `a.0x`.
        if let (Some(Ok(one)), Some(other)) = (url("a"), url(value)) {
            let other = other.expect("another parser reads the URL with any value");
            assert_eq!(one.origin(), other.origin());
            let segments = |url: &Url| url.path_segments().map(Iterator::count);
            assert_eq!(segments(&one), segments(&other), "{one} {other}");
            assert_eq!(one.query_pairs().count(), other.query_pairs().count(), "{one} {other}");
            assert_eq!((one.fragment(), other.fragment()), (None, None));
        }
    }
}
