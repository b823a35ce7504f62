//! The README and the pages of `docs/`, whose examples are doctests. `cargo xtask tidy` finds missing pages.

#[doc = include_str!("../../README.md")]
struct ReadmePage;

#[doc = include_str!("../../docs/README.md")]
struct GuidePage;

#[doc = include_str!("../../docs/asking.md")]
struct AskingPage;

#[doc = include_str!("../../docs/bridge.md")]
struct BridgePage;

#[doc = include_str!("../../docs/capabilities.md")]
struct CapabilitiesPage;

#[doc = include_str!("../../docs/cli.md")]
struct CliPage;

#[doc = include_str!("../../docs/clients.md")]
struct ClientsPage;

#[doc = include_str!("../../docs/conformance.md")]
struct ConformancePage;

#[doc = include_str!("../../docs/coverage.md")]
struct CoveragePage;

#[doc = include_str!("../../docs/decisions.md")]
struct DecisionsPage;

#[doc = include_str!("../../docs/deploying.md")]
struct DeployingPage;

#[doc = include_str!("../../docs/errors.md")]
struct ErrorsPage;

#[doc = include_str!("../../docs/extensions.md")]
struct ExtensionsPage;

#[doc = include_str!("../../docs/gates.md")]
struct GatesPage;

#[doc = include_str!("../../docs/gateway.md")]
struct GatewayPage;

#[doc = include_str!("../../docs/http.md")]
struct HttpPage;

#[doc = include_str!("../../docs/interop.md")]
struct InteropPage;

#[doc = include_str!("../../docs/migrating-from-fastmcp.md")]
struct MigratingFromFastmcpPage;

#[doc = include_str!("../../docs/migrating-from-go-sdk.md")]
struct MigratingFromGoSdkPage;

#[doc = include_str!("../../docs/migrating-from-mcp-go.md")]
struct MigratingFromMcpGoPage;

#[doc = include_str!("../../docs/migrating-from-rmcp.md")]
struct MigratingFromRmcpPage;

#[doc = include_str!("../../docs/migrating-from-typescript.md")]
struct MigratingFromTypescriptPage;

#[doc = include_str!("../../docs/mounting.md")]
struct MountingPage;

#[doc = include_str!("../../docs/observability.md")]
struct ObservabilityPage;

#[doc = include_str!("../../docs/operating.md")]
struct OperatingPage;

#[doc = include_str!("../../docs/promises.md")]
struct PromisesPage;

#[doc = include_str!("../../docs/prompts.md")]
struct PromptsPage;

#[doc = include_str!("../../docs/relay.md")]
struct RelayPage;

#[doc = include_str!("../../docs/limits.md")]
struct LimitsPage;

#[doc = include_str!("../../docs/replies.md")]
struct RepliesPage;

#[doc = include_str!("../../docs/resources.md")]
struct ResourcesPage;

#[doc = include_str!("../../docs/running.md")]
struct RunningPage;

#[doc = include_str!("../../docs/tasks.md")]
struct TasksPage;

#[doc = include_str!("../../docs/testing.md")]
struct TestingPage;

#[doc = include_str!("../../docs/tools.md")]
struct ToolsPage;
