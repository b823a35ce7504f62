//! Questions of a server at a terminal.

use serde_json::{Value, json};

use crate::{
    hostile::assert_harmless,
    support::{hostile_server, pty::answer_in_terminal},
};

/// Types one line after the other at the prompts of a form, and returns what the server received.
fn fill_in(words: &[&str], lines: &[(&str, &str)]) -> (Option<i32>, String, Value) {
    let url = hostile_server::start();
    let words: Vec<_> = words.iter().map(|word| word.replace("TARGET", &url)).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let (code, shown) = answer_in_terminal(&words, 60, lines);
    let received = shown.lines().find_map(|line| {
        // Behind the line of progress, which was cleared. What was typed is shown too, and a number is JSON.
        serde_json::from_str::<Value>(line.rsplit("\u{1b}[2K").next()?).ok().filter(Value::is_object)
    });
    (code, shown.clone(), received.map(|answers| answers["k"].clone()).unwrap_or_default())
}

/// The prompts of the form, and lines that fit.
const LINES: [(&str, &str); 11] = [
    ("text: ", "Tern\n"),
    ("email [none]: ", "ada@example.com\n"),
    ("date [2024-12-31]: ", "\n"),
    ("number [1.5]: ", "2.5\n"),
    ("integer: ", "14\n"),
    ("boolean [yes]: ", "n\n"),
    ("choice: ", "2\n"),
    ("named [none]: ", "bergen\n"),
    ("titled [b]: ", "Esbjerg\n"),
    ("several: ", "1, e\n"),
    ("titles [e]: ", "\n"),
];

#[test]
fn every_kind_of_field_is_filled_in() {
    let lines: Vec<_> = LINES.into_iter().chain([("Send it? (yes, no, edit) [yes]: ", "\n")]).collect();
    let (code, shown, received) = fill_in(&["call", "TARGET", "form"], &lines);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(
        received,
        json!({"action": "accept", "content": {
            "text": "Tern", "email": "ada@example.com", "date": "2024-12-31", "number": 2.5, "integer": 14,
            "boolean": false, "choice": "e", "named": "b", "titled": "e", "several": ["b", "e"], "titles": ["e"]}})
    );
    assert_harmless("form", &shown);
    assert!(shown.contains("\\u{202e}"), "{shown}");
}

#[test]
fn what_does_not_fit_is_asked_again_with_the_reason() {
    let mut lines = vec![
        ("text: ", "\n"),
        ("`text` is required: it is a text with at least 2 characters", "x\n"),
        ("`text` must be a text with at least 2 characters, not `x`", "Tern\n"),
        ("email [none]: ", "ada\n"),
        ("`email` must be an email address, not `ada`", "\n"),
        ("date [2024-12-31]: ", "tomorrow\n"),
        ("`date` must be a date (`YYYY-MM-DD`), not `tomorrow`", "2024-01-02\n"),
        ("number [1.5]: ", "many\n"),
        ("`number` must be a number, not `many`", "\n"),
        ("integer: ", "40\n"),
        ("`integer` must be an integer from 1 to 14, not `40`", "4\n"),
        ("boolean [yes]: ", "maybe\n"),
        ("`boolean` must be `yes` or `no`, not `maybe`", "yes\n"),
        ("choice: ", "3\n"),
        ("`choice` must be one of `b`, `e`, not `3`", "b\n"),
        ("named [none]: ", "\n"),
        ("titled [b]: ", "\n"),
        ("several: ", "\n"),
        ("`several` is required", "b,x\n"),
        ("`several` must be some of `b`, `e`, at least 1 of them, not `x`", "b\n"),
        ("titles [e]: ", "\n"),
        ("Send it? (yes, no, edit) [yes]: ", "perhaps\n"),
        ("`no` declines.", "edit\n"),
        ("text [Tern]: ", "Auk\n"),
    ];
    // What was typed before is the default now.
    lines.extend(
        ["email [none]", "date [2024-01-02]", "number [1.5]", "integer [4]"].map(|prompt| (prompt, "\n")),
    );
    lines.extend(
        ["boolean [yes]", "choice [b]", "named [none]", "titled [b]", "several [b]"]
            .map(|prompt| (prompt, "\n")),
    );
    lines.extend([("titles [e]", "\n"), ("text = Auk", "y\n")]);
    let (code, shown, received) = fill_in(&["call", "TARGET", "form"], &lines);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(
        received["content"],
        json!({"text": "Auk", "date": "2024-01-02", "number": 1.5, "integer": 4, "boolean": true,
            "choice": "b", "titled": "b", "several": ["b"], "titles": ["e"]})
    );
}

#[test]
fn a_form_can_be_declined_and_cancelled() {
    let lines: Vec<_> = LINES.into_iter().chain([("Send it?", "no\n")]).collect();
    assert_eq!(fill_in(&["call", "TARGET", "form"], &lines).2, json!({"action": "decline"}));
    let (code, shown, received) = fill_in(&["call", "TARGET", "form"], &[("text: ", "\u{4}")]);
    assert_eq!((code, received), (Some(0), json!({"action": "cancel"})), "{shown}");
    // What was given is not asked for.
    let words =
        ["call", "TARGET", "form", "--answer", "text=Tern", "--answer", "integer=1", "--answer", "several=b"];
    let left = LINES.into_iter().filter(|(prompt, _)| !["text: ", "integer: ", "several: "].contains(prompt));
    let lines: Vec<_> = left.chain([("Send it?", "\n")]).collect();
    let (code, shown, received) = fill_in(&words, &lines);
    assert_eq!((code, &received["content"]["text"]), (Some(0), &json!("Tern")), "{shown}");
}

#[test]
fn the_host_of_a_page_is_shown_before_it_is_opened() {
    let host = "It wants you to open a page of xn--pple-43d.example\n";
    let (code, shown, received) =
        fill_in(&["call", "TARGET", "page"], &[("Open it? (yes, no) [no]: ", "yes\n")]);
    assert_eq!((code, &received), (Some(0), &json!({"action": "accept"})), "{shown}");
    assert!(shown.find(host).unwrap() < shown.find("Open it?").unwrap(), "{shown}");
    assert!(shown.contains("letters that may look like others"), "{shown}");
    // Without a display there is no browser.
    assert!(
        shown.contains("Open this page in a browser: https://xn--pple-43d.example/pay?to=1\n"),
        "{shown}"
    );
    assert_harmless("page", &shown);
    let (_, shown, received) = fill_in(&["call", "TARGET", "page"], &[("Open it?", "\n")]);
    assert_eq!(received, json!({"action": "decline"}), "{shown}");
}

#[test]
fn both_eras_ask_at_the_terminal() {
    for era in ["stateless", "session"] {
        let words = ["call", "demo", "berth", "--era", era];
        let lines = [("boat: ", "Tern\n"), ("nights: ", "40\n"), ("from 1 to 14", "3\n"), ("Send it?", "\n")];
        let (code, shown) = answer_in_terminal(&words, 80, &lines);
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.ends_with("Berth 1 for the Tern, 3 nights.\n"), "{era}: {shown}");
    }
}

#[test]
fn ctrl_c_ends_a_form_and_nothing_is_sent() {
    let (code, shown, received) = fill_in(&["call", "TARGET", "form"], &[("text: ", "\u{3}")]);
    assert_eq!((code, received), (Some(130), Value::Null), "{shown}");
}

#[test]
fn a_narrow_terminal_asks_the_same() {
    let lines = [("boat: ", "Tern\n"), ("nights: ", "3\n"), ("Send it?", "\n")];
    let (code, shown) = answer_in_terminal(&["call", "demo", "berth"], 20, &lines);
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}
