//! Questions of servers.

#[cfg(target_os = "linux")]
mod forms;
mod questions;
