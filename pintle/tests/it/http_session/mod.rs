//! Sessions of the server over HTTP.

#[cfg(feature = "http-server")]
mod event_logs;
#[cfg(feature = "http-server")]
mod fleet;
mod fleet_faults;
#[cfg(feature = "http-server")]
mod fleet_gaps;
mod fleet_reruns;
#[cfg(feature = "http-server")]
mod handles;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod many_sessions;
#[cfg(feature = "http-server")]
mod races;
#[cfg(feature = "http-server")]
mod restored;
#[cfg(feature = "http-server")]
mod resume;
#[cfg(feature = "http-server")]
mod session_limits;
#[cfg(feature = "http-server")]
mod sessions;
#[cfg(feature = "http-server")]
mod slow_stores;
#[cfg(feature = "http-server")]
mod stores;
#[cfg(feature = "http-server")]
mod two_endpoints;
