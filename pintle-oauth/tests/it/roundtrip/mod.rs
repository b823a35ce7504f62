//! A client, a protected server and an authorization server together.

mod attacks;
mod bound_token;
mod expired_token;
mod first_login;
mod loopback;
mod rotated_keys;
mod step_up;
mod test_client;
