//! Gates of servers, mounts and relays.

mod confirm;
mod counts;
mod leaks;
mod rules;
mod search;
