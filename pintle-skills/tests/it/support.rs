//! Clients of `pintle`'s own tests; no tests.

#[path = "../../../pintle/tests/it/support/eras.rs"]
#[allow(dead_code, unexpected_cfgs, reason = "other tests use the rest, with features of their crate")]
pub(crate) mod eras;
#[path = "../../../pintle/tests/it/support/line_client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
pub(crate) mod line_client;
