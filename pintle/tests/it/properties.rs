//! Conversations that nobody would have thought of. The fuzz targets play the same.

#[path = "../support/mod.rs"]
mod support;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a client changes about a `requestState`, it is refused, and the state itself is still good.
    #[test]
    fn a_state_that_was_changed_is_refused(course in prop::collection::vec(any::<u8>(), 0..40)) {
        support::sealed_state::play(&course);
    }

    /// Requests of a session in any order: each is answered, none twice, and nothing is left at the end.
    #[test]
    fn a_session_survives_any_order_of_requests(course in prop::collection::vec(any::<u8>(), 0..160)) {
        support::session_sequence::play(&course);
    }

    /// Whatever comes as a stream of events, every call ends.
    #[test]
    fn a_call_ends_whatever_its_stream_holds(course in prop::collection::vec(any::<u8>(), 0..200)) {
        support::event_stream::play(&course);
    }
}
