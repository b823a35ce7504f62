//! The page of `docs/` that is about this crate, whose examples are tests.

#[doc = include_str!("../../docs/openapi.md")]
struct OpenApiPage;
