//! Tools that send HTTP requests.

mod apis;
mod requests;
