//! The README and the pages of `docs/`, whose examples are tests. `cargo xtask tidy` finds a page that is missing here.

#[doc = include_str!("../../README.md")]
struct Readme;

#[doc = include_str!("../../docs/README.md")]
struct Guide;

#[doc = include_str!("../../docs/asking.md")]
struct Asking;

#[doc = include_str!("../../docs/clients.md")]
struct Clients;

#[doc = include_str!("../../docs/conformance.md")]
struct Conformance;

#[doc = include_str!("../../docs/coverage.md")]
struct Coverage;

#[doc = include_str!("../../docs/decisions.md")]
struct Decisions;

#[doc = include_str!("../../docs/errors.md")]
struct Errors;

#[doc = include_str!("../../docs/http.md")]
struct Http;

#[doc = include_str!("../../docs/interop.md")]
struct Interop;

#[doc = include_str!("../../docs/migrating-from-go-sdk.md")]
struct MigratingFromGoSdk;

#[doc = include_str!("../../docs/migrating-from-mcp-go.md")]
struct MigratingFromMcpGo;

#[doc = include_str!("../../docs/migrating-from-rmcp.md")]
struct MigratingFromRmcp;

#[doc = include_str!("../../docs/migrating-from-typescript.md")]
struct MigratingFromTypescript;

#[doc = include_str!("../../docs/prompts.md")]
struct Prompts;

#[doc = include_str!("../../docs/replies.md")]
struct Replies;

#[doc = include_str!("../../docs/resources.md")]
struct Resources;

#[doc = include_str!("../../docs/running.md")]
struct Running;

#[doc = include_str!("../../docs/testing.md")]
struct Testing;

#[doc = include_str!("../../docs/tools.md")]
struct Tools;
