//! Arbitrary texts. The fuzz target runs the same checks.

use proptest::prelude::*;

#[path = "../support/yaml.rs"]
mod yaml;

/// Parts of texts, of which many are YAML.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("a: "),
        Just("- "),
        Just("\n"),
        Just("\n  "),
        Just("{a: 1, b: [x, y]}"),
        Just("\"q\\n\""),
        Just("'it''s'"),
        Just("|\n  block\n"),
        Just(">-\n  folded\n"),
        Just("&b "),
        Just("*b"),
        Just("~"),
        Just("1e3"),
        Just("0x1f"),
        Just("true"),
        Just("# comment\n"),
        Just("---\n"),
        Just("? "),
        Just(": "),
        Just("!!str "),
        Just("<<: "),
        Just("ü"),
        Just("[a, b"),
        Just("}"),
        Just("\t"),
        Just("k: v\n"),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn what_is_read_is_read_again_as_json(text in text()) {
        yaml::play(&text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        yaml::play(&text);
    }
}
