//! Gates of servers, mounts and relays.

mod confirm;
mod counts;
mod hostile;
mod leaks;
mod methods;
mod repeated;
mod rules;
mod search;
