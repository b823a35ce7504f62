//! Tasks of servers behind another one.

mod across_eras;
mod across_relays;
mod scripted;
mod several;
mod watched;
mod whole_server;
