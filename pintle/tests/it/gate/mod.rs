//! Gates of servers, mounts and relays.

mod arguments;
mod audit;
mod confirm;
mod counts;
mod hostile;
#[cfg(feature = "http-server")]
mod http;
mod leaks;
mod long_uris;
mod methods;
mod providers;
mod repeated;
mod results;
mod rules;
mod search;
mod spellings;
