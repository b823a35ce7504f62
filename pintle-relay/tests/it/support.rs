//! The clients and servers that the tests of `pintle` have.
#![allow(dead_code, reason = "each crate uses some of them")]

#[path = "../../../pintle/tests/it/support/drop_counter.rs"]
pub(crate) mod drop_counter;
#[path = "../../../pintle-tasks/tests/it/support/durable.rs"]
pub(crate) mod durable;
#[path = "../../../pintle/tests/it/support/eras.rs"]
pub(crate) mod eras;
#[path = "../../../pintle/tests/it/support/http_client.rs"]
pub(crate) mod http_client;
#[path = "../../../pintle/tests/it/support/line_client.rs"]
pub(crate) mod line_client;
#[path = "../../../pintle/tests/it/support/scripted_http.rs"]
pub(crate) mod scripted_http;
pub(crate) mod task_provider;
#[path = "../../../pintle-tasks/tests/it/support/tasks.rs"]
pub(crate) mod tasks;
