//! Tasks of servers behind another one.

mod across_eras;
mod across_relays;
mod both_eras;
mod scripted;
mod several;
mod watched;
mod whole_server;
