//! OAuth 2.1 for the Model Context Protocol: clients log in when a server requires it, servers verify tokens.
//!
//! [`client::OAuth`] is what [`pintle::client::http::Http::auth`] takes. [`server::Protected`] is a layer around
//! [`pintle::server::http::Http`].
//!
//! | feature | for | default |
//! |---|---|---|
//! | `client` | logging in to servers | yes |
//! | `server` | checking the tokens of callers | no |
//! | `tls` | `https` for both | yes |
//! | `testing` | an authorization server for tests | no |

#[cfg(feature = "client")]
pub mod client;
#[cfg(all(doctest, feature = "client", feature = "server", feature = "testing"))]
mod guide;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod shared;
#[cfg(feature = "testing")]
pub mod testing;
