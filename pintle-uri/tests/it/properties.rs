//! Arbitrary templates and URIs. The fuzz target runs the same checks.

#[path = "../support/uri_template.rs"]
mod uri_template;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text is a template that matches or does not, and no variable leads out of its directory.
    #[test]
    fn a_template_matches_or_does_not(
        template in "[{}a-c+#./;?&:*%0-9]{0,16}",
        uri in "[a-c+#./;?&:=%0-9]{0,24}",
    ) {
        uri_template::play(&format!("{template}\n{uri}"));
    }
}
