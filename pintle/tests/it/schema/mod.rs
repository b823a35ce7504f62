//! Schemas, and the order of their members.

#[cfg(all(feature = "client", feature = "server"))]
mod member_order;
#[cfg(all(feature = "server", feature = "validation"))]
mod options;
#[cfg(feature = "server")]
mod typed_handlers;
#[cfg(all(feature = "server", feature = "validation"))]
mod types;
