//! Clients that log in, against a server and an authorization server in memory.

mod kept;
mod login;
mod machine;
mod refresh;
mod refused;
mod step_up;
mod world;
