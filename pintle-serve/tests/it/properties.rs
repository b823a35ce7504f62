//! Arbitrary values of tools. The fuzz target runs the same checks.

use proptest::prelude::*;

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
        served_tool::play_shells(&value);
    }
}

proptest! {
    #[test]
    fn a_value_stays_in_the_places_of_any_text(texts in prop::collection::vec(value(), 1..4), value in value()) {
        served_tool::play_text(&format!("echo {}", texts.join("{v}")), &value);
        served_tool::play_text(&format!("https://h.example/{}", texts.join("{v}")), &value);
    }
}
