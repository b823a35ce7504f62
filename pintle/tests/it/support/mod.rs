//! Clients, servers and pipes that tests are written with; no tests.

#[cfg(all(unix, feature = "child", feature = "stdio"))]
pub(crate) mod child_servers;
#[cfg(feature = "server")]
pub(crate) mod consulting_server;
#[cfg(feature = "server")]
pub(crate) mod drop_counter;
#[cfg(feature = "server")]
pub(crate) mod eras;
#[cfg(feature = "http-server")]
pub(crate) mod http_client;
#[cfg(all(feature = "http-client", feature = "http-server"))]
pub(crate) mod http_server;
#[cfg(all(feature = "http-client", feature = "http-server"))]
pub(crate) mod http_socket;
#[cfg(feature = "server")]
pub(crate) mod line_client;
#[cfg(all(unix, feature = "child", feature = "stdio", feature = "server"))]
pub(crate) mod load_server;
#[cfg(all(feature = "http-client", feature = "http-server"))]
pub(crate) mod over;
#[cfg(feature = "server")]
pub(crate) mod pipe;
#[cfg(feature = "http-client")]
pub(crate) mod scripted_http;
#[cfg(feature = "client")]
pub(crate) mod scripted_server;
#[cfg(feature = "server")]
pub(crate) mod subscriber;
pub(crate) mod transport_calls;
