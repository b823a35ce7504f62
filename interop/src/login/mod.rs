//! Logging in with an authorization server of somebody else's, a case each.

mod browser;
mod cases;
mod kept;
mod provider;
mod server;

pub use cases::{CASES, Case};
pub use provider::Provider;
