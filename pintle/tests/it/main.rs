//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(missing_docs, reason = "tests")]

mod raw;
mod server_both_eras;
mod stress_ask;
mod stress_changes;
mod stress_end;
mod stress_groups;
mod stress_jam;
mod stress_keepalive;
mod stress_load;
mod stress_panic;
mod stress_pipe;
mod stress_rivals;
