//! What a server offers: registering, listing, hiding and changing it.

#[cfg(feature = "server")]
mod checks;
#[cfg(feature = "server")]
mod completion;
#[cfg(feature = "server")]
mod definitions;
#[cfg(feature = "server")]
mod duplicates;
#[cfg(feature = "server")]
mod filters;
#[cfg(feature = "server")]
mod listing;
#[cfg(feature = "server")]
mod overlays;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod sources;
