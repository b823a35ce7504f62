//! A protected server in memory, with requests written by hand.

mod admission;
mod principal;
mod requires;
mod warnings;
