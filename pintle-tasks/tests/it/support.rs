//! The clients and servers that the tests of `pintle` have.
#![allow(dead_code, reason = "each crate uses some of them")]

#[path = "../../../pintle/tests/it/support/child_servers.rs"]
pub(crate) mod child_servers;
#[path = "../../../pintle/tests/it/support/consulting_server.rs"]
pub(crate) mod consulting_server;
#[path = "../../../pintle/tests/it/support/drop_counter.rs"]
pub(crate) mod drop_counter;
pub(crate) mod durable;
#[path = "../../../pintle/tests/it/support/eras.rs"]
pub(crate) mod eras;
#[path = "../../../pintle/tests/it/support/http_client.rs"]
pub(crate) mod http_client;
#[path = "../../../pintle/tests/it/support/http_server.rs"]
pub(crate) mod http_server;
#[path = "../../../pintle/tests/it/support/line_client.rs"]
pub(crate) mod line_client;
#[path = "../../../pintle/tests/it/support/load_server.rs"]
pub(crate) mod load_server;
#[path = "../../../pintle/tests/it/support/over.rs"]
pub(crate) mod over;
#[path = "../../../pintle/tests/it/support/scripted_server.rs"]
pub(crate) mod scripted_server;
pub(crate) mod tasks;
#[path = "../../../pintle/tests/it/support/transport_calls.rs"]
pub(crate) mod transport_calls;
