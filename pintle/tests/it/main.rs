//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]

#[cfg(feature = "client")]
mod client_calls;
#[cfg(feature = "client")]
mod client_changes;
#[cfg(all(unix, feature = "client", feature = "child"))]
mod client_child;
#[cfg(feature = "client")]
mod client_group;
#[cfg(feature = "client")]
mod client_limits;
#[cfg(feature = "client")]
mod client_opening;
#[cfg(all(feature = "client", feature = "server"))]
mod client_oversized;
#[cfg(feature = "client")]
mod client_policy;
#[cfg(feature = "client")]
mod client_questions;
#[cfg(feature = "client")]
mod client_robustness;
#[cfg(all(feature = "client", feature = "server"))]
mod client_server;
#[cfg(feature = "client")]
mod client_world;
#[cfg(feature = "server")]
mod content;
#[cfg(feature = "server")]
mod eras;
#[cfg(all(unix, feature = "child", feature = "client", feature = "macros", feature = "stdio"))]
mod examples;
#[cfg(all(feature = "client", feature = "server"))]
mod guide_errors;
mod guide_running;
#[cfg(feature = "http-client")]
mod http_client_auth;
#[cfg(feature = "http-client")]
mod http_client_headers;
#[cfg(feature = "http-client")]
mod http_client_limits;
#[cfg(feature = "http-client")]
mod http_client_listen;
#[cfg(feature = "http-client")]
mod http_client_oldest;
#[cfg(feature = "http-client")]
mod http_client_opening;
#[cfg(feature = "http-client")]
mod http_client_proxy;
#[cfg(feature = "http-client")]
mod http_client_redirect;
#[cfg(feature = "http-client")]
mod http_client_requests;
#[cfg(feature = "http-client")]
mod http_client_resume;
#[cfg(feature = "http-client")]
mod http_client_script;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_client_server;
#[cfg(feature = "http-client")]
mod http_client_session;
#[cfg(feature = "http-client")]
mod http_client_socket;
#[cfg(feature = "http-client")]
mod http_client_stateless;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_crowd;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_cut;
#[cfg(all(unix, feature = "child", feature = "http-client", feature = "http-server"))]
mod http_docs;
#[cfg(feature = "http-server")]
mod http_flood;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_gone;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_hands;
#[cfg(feature = "http-server")]
mod http_kit;
#[cfg(feature = "http-server")]
mod http_left;
#[cfg(feature = "http-server")]
mod http_log_kit;
#[cfg(feature = "http-server")]
mod http_modes;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_mounted;
#[cfg(feature = "http-server")]
mod http_overload;
#[cfg(feature = "http-server")]
mod http_refusals;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_restart;
#[cfg(feature = "http-server")]
mod http_resume;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_reuse;
#[cfg(feature = "http-server")]
mod http_review;
#[cfg(feature = "http-server")]
mod http_rights;
#[cfg(feature = "http-server")]
mod http_serve;
#[cfg(feature = "http-server")]
mod http_session;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_soak;
#[cfg(feature = "http-server")]
mod http_stateless;
#[cfg(feature = "http-server")]
mod http_stop;
#[cfg(feature = "http-server")]
mod http_tenants;
#[cfg(feature = "http-server")]
mod http_two_endpoints;
#[cfg(feature = "http-server")]
mod http_unread;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod http_world;
#[cfg(feature = "http-server")]
mod http_written;
#[cfg(feature = "macros")]
mod macros_handlers;
#[cfg(feature = "macros")]
mod macros_prompt;
#[cfg(feature = "macros")]
mod macros_resource;
#[cfg(feature = "macros")]
mod macros_schema;
#[cfg(feature = "macros")]
mod macros_tool;
#[cfg(feature = "macros")]
mod macros_wrong;
#[cfg(all(feature = "client", feature = "server"))]
mod order;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod properties;
#[cfg(feature = "server")]
mod raw;
#[cfg(all(feature = "server", feature = "validation"))]
mod schema_options;
#[cfg(all(feature = "server", feature = "validation"))]
mod schema_types;
#[cfg(feature = "server")]
mod server_ask;
#[cfg(feature = "server")]
mod server_both_eras;
#[cfg(feature = "server")]
mod server_catalogue;
#[cfg(feature = "server")]
mod server_completion;
#[cfg(feature = "server")]
mod server_custom;
#[cfg(feature = "server")]
mod server_elicit;
#[cfg(feature = "server")]
mod server_extensions;
#[cfg(feature = "server")]
mod server_features;
#[cfg(feature = "server")]
mod server_filters;
#[cfg(feature = "server")]
mod server_hooks;
#[cfg(feature = "server")]
mod server_layers;
#[cfg(feature = "server")]
mod server_limits;
#[cfg(feature = "server")]
mod server_patience;
#[cfg(feature = "server")]
mod server_prompts;
#[cfg(feature = "server")]
mod server_replay;
#[cfg(feature = "server")]
mod server_resources;
#[cfg(feature = "server")]
mod server_sources;
#[cfg(feature = "logging")]
mod server_telling;
#[cfg(feature = "server")]
mod server_typed;
#[cfg(feature = "server")]
mod stress_ask;
#[cfg(feature = "server")]
mod stress_changes;
#[cfg(feature = "server")]
mod stress_end;
#[cfg(feature = "server")]
mod stress_groups;
#[cfg(feature = "server")]
mod stress_jam;
#[cfg(feature = "server")]
mod stress_keepalive;
#[cfg(feature = "server")]
mod stress_load;
#[cfg(feature = "server")]
mod stress_panic;
#[cfg(feature = "server")]
mod stress_pipe;
#[cfg(feature = "server")]
mod stress_rivals;
#[cfg(all(unix, feature = "child", feature = "stdio", feature = "server"))]
mod stress_stdio;
#[cfg(all(feature = "client", feature = "server"))]
mod testing_kit;
#[cfg(all(unix, feature = "child"))]
mod transport_child;
#[cfg(all(unix, feature = "child", feature = "stdio"))]
mod transport_helper;
mod transport_kit;
mod transport_record;
#[cfg(feature = "net")]
mod transport_socket;
#[cfg(all(unix, feature = "child", feature = "stdio"))]
mod transport_stdio;
mod transport_verbs;
