//! The pages of `docs/` that are about this crate, whose examples are tests.

#[doc = include_str!("../../docs/serve.md")]
struct ServePage;

#[doc = include_str!("../../docs/workers.md")]
struct WorkersPage;
