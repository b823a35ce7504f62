//! Conversations that nobody would have thought of.

use proptest::prelude::*;

use crate::{asking, conversation};

proptest! {
    /// Both eras interleaved, batches, questions, cancellations: every byte that comes out is part of a message, and
    /// every request gets one answer unless it was cancelled.
    #[test]
    fn a_server_owes_nobody_an_answer(course in prop::collection::vec(any::<u8>(), 0..400)) {
        conversation::play(&course);
    }

    /// Whatever a server says, each request of ours ends once, and what is over stays over.
    #[test]
    fn a_client_waits_for_nothing_twice(course in prop::collection::vec(any::<u8>(), 0..400)) {
        asking::play(&course);
    }
}
