//! The command at a terminal, where keys are pressed.

#[cfg(unix)]
mod images;
#[cfg(unix)]
pub(crate) mod interrupt;
#[cfg(target_os = "linux")]
mod pager;
mod repl;
