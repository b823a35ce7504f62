//! Clients against a scripted server and the authorization server of the test kit.

mod device;
mod dpop;
mod login;
mod machine;
mod refresh;
mod refused;
mod revocation;
mod step_up;
mod stored_credentials;
