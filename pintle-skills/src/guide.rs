//! The pages of `docs/` that are about this crate, whose examples are tests.

#[doc = include_str!("../../docs/apps.md")]
struct AppsPage;

#[doc = include_str!("../../docs/skills.md")]
struct SkillsPage;
