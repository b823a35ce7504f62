//! Logging in with an authorization server of somebody else's, a case each.

mod browser;
mod cases;
mod checked;
mod kept;
mod provider;

pub use cases::{CASES, Case};
pub use provider::Provider;
