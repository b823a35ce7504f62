//! Arbitrary values of tools. The fuzz target runs the same checks.

use std::process::Command;

use pintle::types::JsonObject;
use pintle_serve::{ServedTools, ToolEntry};
use proptest::prelude::*;
use serde_json::json;

#[path = "../support/served_tool.rs"]
mod served_tool;

/// Texts with what shells and URLs have meanings for.
fn value() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z]{1,3}",
        Just("-".to_owned()),
        Just("--".to_owned()),
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("$(id)".to_owned()),
        Just("`id`".to_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
        Just("*".to_owned()),
        Just("!".to_owned()),
        Just("/".to_owned()),
        Just(".".to_owned()),
        Just("%2e".to_owned()),
        Just("{v}".to_owned()),
        Just("&|;<>#~".to_owned()),
        Just("ü".to_owned()),
        Just("\u{7f}".to_owned()),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_value_stays_in_its_place(value in value()) {
        served_tool::play(&value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// What `--dry-run` prints is read by shells as it was meant.
    #[test]
    fn a_printed_command_is_read_by_real_shells(value in value()) {
        let entry = json!({"command": ["printf", "%s\\n", "x{v}"], "arguments": {"v": "string"}});
        let entry: ToolEntry = serde_json::from_value(entry).unwrap();
        let tools = ServedTools::new(&[("t".to_owned(), entry)].into(), ".".as_ref()).unwrap();
        let arguments = JsonObject::from_iter([("v".to_owned(), json!(value))]);
        let printed = tools.plan("t", &arguments).unwrap().unwrap().to_string();
        for shell in ["sh", "bash", "dash"] {
            let Ok(output) = Command::new(shell).args(["-c", &printed]).output() else { continue };
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("x{value}\n"), "{}: {}", shell, printed);
        }
    }
}
