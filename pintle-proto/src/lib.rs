//! The Model Context Protocol as state machines. No I/O, no clock, no randomness: messages in, decisions out.
