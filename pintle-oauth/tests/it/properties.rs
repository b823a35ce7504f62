//! Documents and tokens that nobody would have thought of. The fuzz targets play the same.

#[path = "../support/mod.rs"]
mod support;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever servers say of themselves, a login ends, and nothing goes where it must not.
    #[test]
    fn a_login_ends_whatever_is_sent(course in prop::collection::vec(any::<u8>(), 0..60)) {
        support::oauth_documents::play(&course);
    }

    /// Whatever is changed about a token, it is refused, and the token itself is still good.
    #[test]
    fn a_token_that_was_changed_is_refused(course in prop::collection::vec(any::<u8>(), 0..60)) {
        support::oauth_tokens::play(&course);
    }
}
