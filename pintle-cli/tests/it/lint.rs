//! Checks of what a server offers, and of changes of it.

use serde_json::{Value, json};

use crate::support::{HttpServing, machine::Machine, typed};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
}

#[test]
#[cfg(target_os = "linux")]
fn findings_are_an_exit_code_and_have_a_rule() {
    let url = crate::support::hostile_server::start();
    let strict = typed(&["lint", &url, "--strict", "--json"]);
    let report = parsed(&strict.stdout);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(strict.code, Some(if findings.is_empty() { 0 } else { 6 }), "{strict:?}");
    assert!(!findings.is_empty(), "{report}");
    for finding in findings {
        assert!(finding["rule"].is_string() && finding["subject"].is_string(), "{finding}");
    }
    let bytes = report["tools"]["bytes"].as_u64().unwrap();
    assert_eq!(report["tools"]["estimatedTokens"], bytes.div_ceil(4));
    let sarif = parsed(&typed(&["lint", &url, "--strict", "--sarif"]).stdout);
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), findings.len());
    let text = typed(&["lint", "demo"]);
    assert!(text.stdout.contains("(an estimate: bytes / 4)"), "{}", text.stdout);
    let called = typed(&["lint", "demo", "--call", "--json"]);
    assert!(!called.stdout.contains("does not match"), "{}", called.stdout);
}

#[test]
fn a_change_of_the_catalogue_is_drift() {
    let machine = Machine::new("lock");
    let none = machine.typed(&["diff", "harbour"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.ends_with("  try: pintle lock harbour\n"), "{}", none.stderr);
    assert_eq!(machine.typed(&["lock", "harbour"]).code, Some(0));
    let first = machine.read("project/mcp.lock");
    // The same again is the same file, byte for byte.
    assert_eq!(machine.typed(&["lock", "harbour"]).code, Some(0));
    assert_eq!(machine.read("project/mcp.lock"), first);
    let same = machine.typed(&["diff", "harbour"]);
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{same:?}");
    // Of the same server at another time.
    let mut lock = parsed(&first);
    let tools = &mut lock["servers"]["harbour"]["catalogue"]["tools"];
    tools["tide"]["description"] = "Harmless.".into();
    tools["old"] = json!({"name": "old"});
    tools.as_object_mut().unwrap().shift_remove("signal").unwrap();
    machine.write("project/mcp.lock", &lock.to_string());
    let drift = machine.typed(&["diff", "harbour"]);
    assert_eq!(drift.code, Some(6), "{drift:?}");
    for line in ["~ tools/tide.description\n    - Harmless.\n", "- tools/old\n", "+ tools/signal\n"] {
        assert!(drift.stdout.contains(line), "{line}: {}", drift.stdout);
    }
    assert!(drift.stderr.contains("3 changes"), "{}", drift.stderr);
    let json = parsed(&machine.typed(&["diff", "harbour", "--json"]).stdout);
    assert_eq!(json["changes"].as_array().unwrap().len(), 3);
    // Under another name, and in another file.
    assert_eq!(machine.typed(&["lock", "demo", "--as", "x", "--file", "other.lock"]).code, Some(0));
    assert_eq!(machine.typed(&["diff", "demo", "--as", "x", "--file", "other.lock"]).code, Some(0));
    machine.write("project/mcp.lock", "{}");
    assert_eq!(machine.typed(&["diff", "harbour"]).code, Some(1));
}

#[test]
fn two_servers_are_compared() {
    let http = HttpServing::demo();
    let program = env!("CARGO_BIN_EXE_pintle");
    for line in [&["diff", "demo", &http.url][..], &["diff", "demo", "--", program, "demo"]] {
        let same = typed(line);
        assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""), "{same:?}");
    }
    assert_eq!(typed(&["call", &http.url, "season"]).code, Some(0));
    let other = typed(&["diff", "demo", &http.url]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(6), "+ tools/regatta\n"), "{other:?}");
    assert!(other.stderr.contains("do not offer the same: 1 difference\n"), "{}", other.stderr);
    // The program is the second one.
    let back = typed(&["diff", &http.url, "--json", "--", program, "demo"]);
    let json = parsed(&back.stdout);
    assert_eq!((&json["from"], &json["to"]), (&http.url.as_str().into(), &"pintle".into()), "{back:?}");
    assert_eq!(json["changes"][0]["change"], "removed", "{back:?}");
    let many = typed(&["diff", "demo", "demo", "demo"]);
    assert!(many.code == Some(1) && many.stderr.contains("one target or two"), "{many:?}");
}
