//! Conversations through a relay, compared with those without it.

mod eras;
mod parked;
mod world;
